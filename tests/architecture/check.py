#!/usr/bin/env python3
"""Checks the rules of the house (rules.py) over the C++ sources of a tree.

usage: check.py [--root DIR]      exit 0: clean, 1: broken rules, each as file:line: what is allowed
"""

import argparse
import functools
import pathlib
import re
import sys

import rules

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')

# The head of a member function that is defined outside its class: Class::Nested::name(
MEMBER = re.compile(r"^(?:[A-Za-z][\w:<>,&*\s]*?[\s&*])?((?:[A-Z]\w*(?:<\w+>)?::)+)(?:~?\w+|operator[^\n(]+)\(", re.M)
# What follows the parameters of a definition, not of a call or a declaration.
BODY = re.compile(r"(?:\s|const\b|noexcept\b|&|->[^{;]+)*(?:\{|:\s|=\s*default)")

# The head of a class, up to its body.
CLASS = re.compile(r"\b(?:class|struct)\s+(?:alignas\([^)]*\)\s*)?(\w+)(?:\s+final)?(?:\s*:[^;{}()]*)?\s*\{")
# What is no name of a function although a parenthesis follows.
NO_FUNCTION = re.compile(r"^\s*(?:using|friend|static_assert|typedef|enum)\b|=\s*delete\s*$")

# Numbers are tokens only so that 1'000'000 opens no character literal.
TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<literal>R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"
                  | "(?:\\.|[^"\\\n])*"
                  | '(?:\\.|[^'\\\n])*')
      | \b\d[\w'.]*""",
    re.S | re.X,
)


def blanked(text, kinds):
    """The text with tokens of these kinds replaced by spaces; line numbers stay."""
    def blank(match):
        if any(match.group(kind) is not None for kind in kinds):
            return re.sub(r"[^\n]", " ", match.group())
        return match.group()
    return TOKEN.sub(blank, text)


@functools.cache
def code_of(file):
    """The code of a file, without comments and literals."""
    return blanked(file.read_text(encoding="utf-8"), ("comment", "literal"))


def room_of(path):
    """The longest room that owns this path, None where there is none."""
    owners = [room for room in rules.MAY_INCLUDE if path.startswith(room + "/")]
    return max(owners, key=len, default=None)


def allowed(room, header):
    """May a file of this room include this header of the project?"""
    owner = room_of(header)
    if owner == room:
        return True
    stem = header[:-2] if header.endswith(".h") else header
    may = rules.MAY_INCLUDE[room]
    return owner in may or stem in may or any(header.startswith(entry[:-1]) for entry in may if entry.endswith("/*"))


def circles():
    """Rooms that include themselves by way of others."""
    below = {room: {other for entry in may for other in rooms_of(entry)} - {room}
             for room, may in rules.MAY_INCLUDE.items()}
    for middle in below:
        for others in below.values():
            if middle in others:
                others |= below[middle]
    return [room for room, others in below.items() if room in others]


def rooms_of(entry):
    """The rooms that an entry of MAY_INCLUDE opens."""
    if entry.endswith("/*"):
        return [room for room in rules.MAY_INCLUDE if (room + "/").startswith(entry[:-1])]
    return [entry if entry in rules.MAY_INCLUDE else room_of(entry)]


def names_nothing(root):
    """Entries of MAY_INCLUDE that are no room and no header."""
    for room, may in rules.MAY_INCLUDE.items():
        for entry in (room, *may):
            if not (root / entry.removesuffix("/*")).is_dir() and not (root / f"{entry}.h").is_file():
                yield entry


def check_includes(root, path, lines):
    room = room_of(path)
    if room is None:
        yield 1, "no rule for this folder: add it to MAY_INCLUDE in tests/architecture/rules.py"
        return
    may = ", ".join(rules.MAY_INCLUDE[room]) or "the standard library only"
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, header = match.groups()
        top = header.split("/")[0]
        if quote == "<" and not (root / header).is_file():
            continue
        if top == "tests":
            yield number, f'nobody includes tests, here "{header}"'
        elif quote == '"' and not (root / header).is_file():
            yield number, (f'"{header}" is no file of the project: write its path from the repository '
                           "root, and headers from elsewhere as <...>")
        elif top in rules.CHECKED and not allowed(room, header):
            yield number, f'{room} may not include "{header}"; it may include: {may}'


def check_forbidden(path, directives, code):
    for rule in rules.FORBIDDEN:
        if not path.startswith(rule["where"]) or (rule["allowed"] and path.startswith(rule["allowed"])):
            continue
        if "only_if" in rule and not any(re.search(rule["only_if"], line) for line in directives):
            continue
        for number, (directive, line) in enumerate(zip(directives, code), 1):
            # What stands between the quotes of #include matters; in other lines literals do not.
            text = directive if directive.lstrip().startswith("#") else line
            if re.search(rule["pattern"], text):
                yield number, f'{rule["what"]}: {rule["instead"]}'


def check_file(root, path):
    """(line, severity, message) of everything found in one file."""
    text = (root / path).read_text(encoding="utf-8")
    directives = blanked(text, ("comment",)).split("\n")
    code = code_of(root / path).split("\n")
    for number, message in check_includes(root, path, directives):
        yield number, "error", message
    for number, message in check_forbidden(path, directives, code):
        yield number, "error", message
    length = text.count("\n")
    if length > rules.LINES_FAIL:
        yield length, "error", f"{length} lines; split it, {rules.LINES_FAIL} is the most"
    elif length > rules.LINES_WARN:
        yield length, "warning", f"{length} lines; one idea per file, more than {rules.LINES_WARN} is long"


def crowded(paths):
    """(folder, pairs) of folders with more files side by side than a reader can survey."""
    pairs = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        pairs.setdefault(folder, set()).add(name.rpartition(".")[0])
    for folder, names in pairs.items():
        if len(names) > rules.PAIRS_FAIL:
            yield folder, len(names)


def members(code):
    """The classes of which this code, without comments and literals, defines member functions."""
    for match in MEMBER.finditer(code):
        end, depth = match.end(), 1
        while end < len(code) and depth:
            depth += {"(": 1, ")": -1}.get(code[end], 0)
            end += 1
        if BODY.match(code, end):
            yield match.group(1).removesuffix("::")


def cut_classes(root, paths):
    """(class, files) of classes whose member functions are defined in more than one .cc. The same name in two
    rooms is two classes."""
    files = {}
    for path in paths:
        if path.endswith(".cc"):
            for name in members(code_of(root / path)):
                files.setdefault(f"{room_of(path)}: {name}", set()).add(path)
    for name, where in sorted(files.items()):
        if len(where) > 1:
            yield name, sorted(where)


def body_of(code, start):
    """The text from `start` to the brace that closes it, all that stands in inner braces left out."""
    depth, out = 1, []
    for token in re.finditer(r"[{}]|[^{}]+", code[start:]):
        text = token.group()
        depth += {"{": 1, "}": -1}.get(text, 0)
        if depth == 0:
            break
        if depth == 1:
            out.append(";" if text == "}" else text)
    return "".join(out)


def declarations(body):
    """The declarations in the body of a class, without template arguments and attributes."""
    body = re.sub(r"^\s*#.*$", "", body, flags=re.M)
    body = re.sub(r"\b(?:public|private|protected)\s*:|alignas\([^)]*\)|\[\[.*?\]\]", " ", body)
    while body != (inner := re.sub(r"<[^<>();]*(?:\([^()]*\)[^<>();]*)*>", " ", body)):
        body = inner
    return body.split(";")


def functions(name, body):
    """How many member functions a class with this body declares. Overloads count each; constructors,
    destructor and what is deleted do not."""
    count = 0
    for declaration in declarations(body):
        match = re.search(r"(~?\w+|operator\s*\S+?)\s*\(", declaration)
        if match and not NO_FUNCTION.search(declaration) and match.group(1).lstrip("~") != name \
                and "=" not in declaration[:match.start()].replace("operator=", ""):
            count += 1
    return count


def data_members(body):
    """How many data members a class with this body has, by their names: trailing_."""
    return sum(1 for declaration in declarations(body)
               if re.match(r"[^(]*\b\w+_\s*(?:\[[^\]]*\]\s*)*(?:=|$)", declaration.rstrip()))


def wide_classes(root, paths):
    """(path, class, what, count, most) of classes with more members than a reader can survey."""
    for path in paths:
        code = code_of(root / path)
        for match in CLASS.finditer(code):
            name, body = match.group(1), body_of(code, match.end())
            for what, count, most in (("member functions", functions(name, body), rules.FUNCTIONS_FAIL),
                                      ("data members", data_members(body), rules.MEMBERS_FAIL)):
                if count > most:
                    yield path, name, what, count, most


def sources(root):
    for top in rules.CHECKED:
        for file in sorted((root / top).rglob("*")):
            if file.suffix in (".h", ".cc") and file.is_file():
                yield file.relative_to(root).as_posix()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    root = parser.parse_args().root
    files = errors = 0
    if root == parser.get_default("root"):
        for entry in names_nothing(root):
            errors += 1
            print(f'rules.py: error: MAY_INCLUDE says "{entry}", which is neither a folder nor a header')
    if circle := circles():
        errors += 1
        print(f"rules.py: error: these rooms include one another in a circle: {', '.join(circle)}")
    for folder, pairs in crowded(sources(root)):
        errors += 1
        print(f"{folder}: error: {pairs} pairs of .h and .cc side by side, {rules.PAIRS_FAIL} is the most: "
              "make sub-rooms")
    for name, where in cut_classes(root, sources(root)):
        errors += 1
        print(f"{name}: error: its member functions are defined in {len(where)} files, 1 is the most: "
              f"{', '.join(where)}; one class has one .h and one .cc")
    for path, name, what, count, most in wide_classes(root, sources(root)):
        errors += 1
        print(f"{path}: error: class {name} has {count} {what}, {most} is the most: "
              "give a part of its state to a class of its own")
    for path in sources(root):
        files += 1
        for number, severity, message in check_file(root, path):
            errors += severity == "error"
            print(f"{path}:{number}: {severity}: {message}")
    print(f"{files} files, {errors} broken rules")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
