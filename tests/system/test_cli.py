"""The program as a user runs it: help, usage errors, output that can be piped."""
import json
import re
import subprocess

import pytest

COMMANDS = ("list", "get", "import", "export", "store", "url", "sim", "version", "help", "completion")


def test_help_lists_every_command(mnemon):
    result = mnemon("--help")
    assert result.returncode == 0
    for command in COMMANDS:
        assert f"\n  {command} " in result.stdout


def test_every_command_explains_itself(mnemon):
    listing = mnemon("--help").stdout.split("Commands:\n")[1].split("\n\n")[0]
    commands = [line.split()[0] for line in listing.splitlines()]
    assert len(commands) >= 5
    for command in commands:
        page = mnemon(command, "--help")
        assert page.returncode == 0
        assert page.stdout.startswith(f"mnemon {command} - ")
        assert f"Usage: mnemon {command}" in page.stdout
        assert mnemon("help", command).stdout == page.stdout
        assert all(len(line) <= 80 for line in page.stdout.splitlines()), page.stdout


WITH_ACTIONS = ("ring", "group", "mirror", "crowd", "store", "job")


def actions_of(mnemon, command):
    listing = mnemon(command, "--help").stdout.split("\nActions:\n")[1].split("\n\n")[0]
    return re.findall(r"^  (\S+)", listing, re.MULTILINE)


@pytest.mark.parametrize("command", WITH_ACTIONS)
def test_every_action_explains_itself(mnemon, command):
    actions = actions_of(mnemon, command)
    assert len(actions) >= 2
    whole = mnemon(command, "--help").stdout
    pages = {action: mnemon(command, action, "--help") for action in actions}
    assert len({page.stdout for page in pages.values()}) == len(actions)
    for action, page in pages.items():
        assert page.returncode == 0 and page.stdout.startswith(f"mnemon {command} {action} - "), page
        assert f"Usage: mnemon {command} {action} " in page.stdout
        assert f"mnemon {command} " in page.stdout.split("Usage:")[1].split("\n", 1)[1].split("\nOptions:")[0], "an example"
        assert all(len(line) <= 80 for line in page.stdout.splitlines()), page.stdout
        assert mnemon("help", command, action).stdout == page.stdout
    # The page of the command says for which actions an option is; each of them, and no other, has it on its page.
    options = re.findall(r"^  (?:-\w, )?(--[a-z-]+)[^\n]*?(?:\s{2,}|\n\s+)((?:[a-z]+(?:, [a-z]+)*: )?)", whole.split("\nOptions:\n")[1], re.MULTILINE)
    for option, of in options:
        meant = set(of.strip(": ").split(", ")) & set(actions) or set(actions)
        assert {action for action in actions if f"  {option}" in pages[action].stdout or f", {option}" in pages[action].stdout} == meant, option


def test_an_option_of_another_action_is_refused(mnemon, tmp_path):
    result = mnemon("job", "pause", "some", "--ring", "--data", str(tmp_path))
    assert (result.returncode, result.stderr) == (
        2, 'mnemon job: --ring is not for "pause", but for add, remove\nTry: mnemon job pause --help\n')
    result = mnemon("ring", "creat", "films", "--data", str(tmp_path))
    assert (result.returncode, result.stderr.split(" There are")[0]) == (2, 'mnemon ring: unknown action "creat"; did you mean create?')
    assert list(tmp_path.iterdir()) == []


def test_no_command_is_wrong_usage_and_shows_the_commands(mnemon):
    result = mnemon()
    assert result.returncode == 2
    assert result.stdout == ""
    assert "Commands:" in result.stderr


@pytest.mark.parametrize(
    "arguments, hint",
    [
        (["ulr"], "did you mean url?"),
        (["versoin"], "did you mean version?"),
        (["--hlep"], 'unknown option "--hlep"'),
        (["help", "simm"], "did you mean sim?"),
        (["url", "--bsae", "x"], "did you mean --base?"),
        (["url", "--json=yes"], "--json takes no value"),
        (["url", "--base"], "--base needs a value: URL"),
        (["url", "--base", "nothing"], "--base: "),
        (["version", "now"], 'unexpected argument "now"'),
        (["completion"], "an argument is missing"),
        (["completion", "fish"], "bash"),
        (["imprt"], "did you mean import?"),
        (["sim", "kernel-netwrok"], "did you mean kernel-network?"),
        (["sim", "kernel-network", "--seed", "one"], '"one" is not a whole number'),
    ],
)
def test_wrong_usage_exits_with_2_and_names_the_nearest_word(mnemon, arguments, hint):
    result = mnemon(*arguments)
    assert result.returncode == 2, result
    assert result.stdout == ""
    assert hint in result.stderr
    assert "Try: mnemon" in result.stderr


def test_version_as_text_and_json(mnemon):
    text = mnemon("version").stdout
    data = json.loads(mnemon("version", "--json").stdout)
    assert text.startswith(f"mnemon {data['version']}\n")
    assert mnemon("--version").stdout == text


def test_options_may_stand_anywhere_until_two_dashes(mnemon):
    first = mnemon("url", "--json", "--base", "http://a/b/", "c")
    last = mnemon("url", "c", "--base=http://a/b/", "--json")
    assert first.stdout == last.stdout
    assert json.loads(first.stdout)["href"] == "http://a/b/c"
    dashed = mnemon("url", "--json", "--base=http://a/", "--", "--json")
    assert json.loads(dashed.stdout)["href"] == "http://a/--json"


def test_a_full_output_device_is_an_error(mnemon):
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [mnemon("version").args[0], "version"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert result.returncode == 1
    assert "cannot write the output" in result.stderr


def test_a_closed_pipe_ends_quietly(mnemon):
    program = mnemon("version").args[0]
    script = f"yes http://example.org/ | head -n 200000 | {program} url | head -n 1"
    result = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60)
    assert result.stdout == '"http://example.org/"\n'
    assert result.stderr == ""


def test_the_man_page_is_clean_roff_and_names_every_command(mnemon):
    page = mnemon("help", "--man").stdout
    check = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-rLL=100n"], input=page, capture_output=True, text=True, timeout=60
    )
    assert check.returncode == 0
    assert check.stderr == ""
    plain = re.sub(".\b", "", check.stdout)  # bold is a letter struck twice
    for command in COMMANDS:
        assert f"mnemon {command}" in plain


def complete(script, line):
    """What bash offers when Tab is pressed at the end of the line."""
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    code = f"{script}\nCOMP_WORDS=({quoted})\nCOMP_CWORD={len(words) - 1}\n_mnemon\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""
    result = subprocess.run(["bash", "-c", code], capture_output=True, text=True, timeout=60)
    assert result.stderr == ""
    return result.stdout.split()


def test_bash_completion_knows_commands_and_options(mnemon):
    script = mnemon("completion", "bash").stdout
    assert complete(script, "mnemon u") == ["url"]
    assert complete(script, "mnemon url --b") == ["--base"]
    assert "kernel-network" in complete(script, "mnemon sim kernel")
    assert complete(script, "mnemon store re") == ["reindex"]
    assert complete(script, "mnemon list --match d") == ["domain"]


def test_serve_says_that_a_retired_setting_has_no_effect(mnemon, tmp_path):
    (tmp_path / "mnemon.conf").write_text("[crowd]\nview = 9\n[http]\naddress = 192.0.2.1\n")  # nobody's: it ends at once
    result = mnemon("serve", "--data", str(tmp_path), "--http", "0")
    assert result.returncode != 0
    assert "are not settings any more: they have no effect" in result.stderr
