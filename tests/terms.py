"""Terms counted plainly, beside which what the package counts is held."""

import numpy as np
from scipy.sparse import csr_matrix

from qkvsearch.text.vocabulary import Vocabulary


def counts_in(vocabulary, texts):
    """How often each text, given as its terms, has each term of a vocabulary, float32."""
    known = [term.decode() for term in vocabulary.terms.tolist()]
    rows = [[terms.count(term) if term else 0 for term in known] for terms in map(list, texts)]
    return csr_matrix(np.array(rows, np.float32).reshape(len(rows), len(known)))


def count_terms(texts, terms_of):
    """The vocabulary of texts, and the counts of their terms."""
    terms = [list(terms_of(text)) for text in texts]
    vocabulary = Vocabulary.of(set().union(*terms))
    return vocabulary, counts_in(vocabulary, terms)
