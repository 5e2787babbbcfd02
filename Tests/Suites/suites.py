"""What the runners of published suites share: a suite's files, the program that answers, the list of deviations."""
import argparse
import csv
import fnmatch
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# Seconds that a clone, and all answers of a suite, may take.
CLONE_TIMEOUT, ANSWER_TIMEOUT = 600, 600


class Failure(Exception):
    """Why there is nothing to compare."""


class Case:
    """A case of a suite: its name, what is asked, and what a right answer is.

    `is_right` takes the answer of the program. A case that a suite leaves open has none.
    """

    def __init__(self, name, question, is_right):
        self.name, self.question, self.is_right = name, question, is_right


def accepted(answer):
    return answer.split()[0] == "accepted"


def refused(answer):
    return not accepted(answer)


def hexes(*values):
    """Bytes and texts as words of a question."""
    return [(value.encode() if isinstance(value, str) else value).hex() for value in values]


def checkout(address, commit, folder):
    """The folder with the suite: the one that is given, or a clone at the commit in .build/suites."""
    if folder:
        if not os.path.isdir(folder):
            raise Failure(f"--folder {folder}: there is no such folder")
        return folder
    folder = os.path.join(ROOT, ".build", "suites", os.path.basename(address))
    if os.path.isdir(os.path.join(folder, ".git")):
        head = subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
        if head.stdout.strip() == commit:
            return folder
    os.makedirs(folder, exist_ok=True)
    for words in (
        ["init", "--quiet"], ["fetch", "--quiet", "--depth", "1", address, commit],
        ["checkout", "--quiet", "--force", "FETCH_HEAD"],
    ):
        ended = subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True, check=False,
                               timeout=CLONE_TIMEOUT)
        if ended.returncode != 0:
            raise Failure(f"git {words[0]}: {ended.stderr.strip()[-300:]}; use --folder for a copy that is there")
    return folder


def answers(program, cases):
    """What the program says of each case, in their order."""
    lines = "".join(" ".join(case.question) + "\n" for case in cases)
    ended = subprocess.run([program], input=lines, capture_output=True, text=True, check=False, timeout=ANSWER_TIMEOUT)
    said = ended.stdout.splitlines()
    if ended.returncode != 0 or len(said) != len(cases):
        raise Failure(f"the program ended with {ended.returncode} after {len(said)} answers of {len(cases)}; the next "
                      f"case is {cases[min(len(said), len(cases) - 1)].name}: {ended.stderr[-500:]}")
    if "no-question" in said:
        raise Failure(f"the program does not understand the question of {cases[said.index('no-question')].name}")
    return said


def listed(name):
    """The rows of a list of deviations: a pattern of case names, how many there are, the answer, and why."""
    path = os.path.join(HERE, name + ".tsv")
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    for row in rows:
        if set(row) != {"cases", "count", "answer", "why"} or not all(row.values()):
            raise Failure(f"{name}.tsv: a row has not four columns: {row}")
    return rows


def compare(name, found):
    """Compares what was found with the list, and prints a line for each part of the suite.

    - found: for each case its name, the answer, and whether that is right. A name begins with its part and a slash.

    A deviation that is not listed is WRONG, and so is a row that does not occur as often as it says.
    """
    rows = listed(name)
    counts, wrong, parts = [0] * len(rows), [], {}
    for case, answer, is_right in found:
        part = parts.setdefault(case.split("/")[0], {"all": 0, "right": 0, "listed": 0})
        part["all"] += 1
        part["right"] += is_right
        if is_right:
            continue
        row = next((place for place, row in enumerate(rows)
                    if fnmatch.fnmatchcase(case, row["cases"]) and answer.split()[0] == row["answer"]), None)
        if row is None:
            wrong.append(f"{case}: {answer[:80]}")
        else:
            counts[row] += 1
            part["listed"] += 1
    for row, count in zip(rows, counts):
        if count != int(row["count"]):
            wrong.append(f"{row['cases']}: {row['answer']}: {row['count']} cases are listed, {count} are so")
    for part, sums in parts.items():
        print(f"{name} {part}: {sums['right']} of {sums['all']}, {sums['listed']} deviations named")
    for line in wrong:
        print(f"WRONG {name} {line}")
    total, right = len(found), sum(is_right for _, _, is_right in found)
    print(f"{name}: {right} of {total}, {sum(counts)} deviations named, {len(wrong)} wrong")
    return not wrong


def options(text, program="portcullis-suites"):
    parser = argparse.ArgumentParser(description=text.split("\n\n")[0])
    parser.add_argument("--folder", metavar="DIR", help="a copy of the suite that is there; else it is cloned")
    parser.add_argument("program", metavar=program.upper(), nargs="?",
                        default=os.path.join(ROOT, ".build", "debug", program), help=f"the built {program}")
    return parser


def run(text, name, address, commit, cases):
    """The whole of a runner whose cases the program answers. `cases` takes the folder of the suite."""
    chosen = options(text).parse_args()
    try:
        read = cases(checkout(address, commit, chosen.folder))
        if not read:
            raise Failure("the suite has no cases")
        said = answers(os.path.abspath(chosen.program), read)
        found = [(case.name, answer, case.is_right(answer)) for case, answer in zip(read, said)]
        return 0 if compare(name, found) else 1
    except (Failure, OSError, KeyError, ValueError, subprocess.SubprocessError) as error:
        print(f"{name}: {error!r}" if isinstance(error, KeyError) else f"{name}: {error}", file=sys.stderr)
        return 2
