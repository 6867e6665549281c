"""Help of the group; what the help of every command has is in tests/contract."""

import re

import click

from qkvsearch.cli import COMMANDS, group


def test_options_of_the_group_have_help_texts():
    options = [option for option in group.params if isinstance(option, click.Option)]
    assert [option.name for option in options if not option.help] == []


def test_the_list_of_commands_shows_a_whole_one_line_summary_of_each(qkv):
    lines = qkv("--help").stdout.split("Commands:\n")[1].split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in lines] == list(COMMANDS)
    for line in lines:
        assert re.fullmatch(r"  \w+ +\S.*[^.]\.", line), line


def test_no_arguments_show_the_help_as_wrong_usage(qkv):
    answer = qkv()
    assert answer.code == 2
    assert "Commands:" in answer.stdout + answer.stderr


def test_version_is_shown(qkv):
    from qkvsearch import __version__

    assert qkv("--version").stdout == f"qkvsearch, version {__version__}\n"
