# Prints the failures of a log of `swift test` again: each issue with its comment, at most 50 lines.
# Then it prints the tests that had not ended, since the program crashed, or exceeded its time. Where
# there is no issue, the log's last lines follow.
#
# Alternatives, not sets, of the signs: mawk, which is Debian's awk, reads bytes.

# Prints a line, cut where it is too long for anyone to read.
function show(line) {
    if (++shown <= 50) print substr(line, 1, 500)
}

# The test's name is between quotation marks, or ends in parentheses.
function name(line) {
    if (match(line, /Test ".*" /)) return substr(line, RSTART, RLENGTH - 1)
    if (match(line, /Test [^ ]*\(\)/)) return substr(line, RSTART, RLENGTH)
    return ""
}

{ last[NR % 20] = $0 }

/^◇ Test .* started\.$/ && !/^◇ Test case/ && !/^◇ Test run/ { open[name($0)] = 1 }
/^(✔|✘|➜) Test .* (passed|failed|skipped)/ { delete open[name($0)] }

# An issue and what follows up to the next event, at most six lines: the rest of an error's text, and
# its comment.
/^✘ .* recorded an issue/ { issues++; left = 6; show($0); next }
/^(◇|✔|✘|➜)/ { left = 0 }
left > 0 { left--; show($0); next }

# Swift's runtime says why it ends a program.
/Fatal error|^error: Exited|Crash: |Segmentation fault/ { show($0) }

END {
    if (shown > 50) print "and " shown - 50 " more lines"
    for (test in open) if (test != "" && ++unended <= 20) print "not ended: " test
    if (unended > 20) print "and " unended - 20 " more that had not ended"
    if (issues) exit
    for (line = NR - 19; line <= NR; line++) if (line > 0) print substr(last[line % 20], 1, 500)
}
