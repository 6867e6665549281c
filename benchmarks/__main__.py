"""The README's first table, ours and the peers in one run; each claim is a file beside this one.

QKVSEARCH_DATA=data python benchmarks    (some minutes; peers: pip install '.[bench]')
"""

import attention
import collaborative
import judged_search
import startup
from common import data_folder, print_table

CLAIMS = (
    collaborative,
    judged_search,
    attention,
    startup,
)

if __name__ == "__main__":
    data_folder()  # before minutes are spent
    print_table(module.claim for module in CLAIMS)
