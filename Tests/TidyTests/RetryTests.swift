import Expectations
import Testing

/// What `deploy/test` does about tests that fail, played with a test program that fails as asked.
@Suite struct RetryTests {
    /// How the test program ends when it runs a part, and when it runs a test again.
    private enum Ending: String {
        case passes, fails, crashes
    }

    /// A copy of the script beside a test program and a compiler that only say what they should.
    private static let stage = #"""
        set -euo pipefail
        folder=$(mktemp -d)
        trap 'rm -rf -- "$folder"' EXIT
        mkdir -p "$folder/deploy" "$folder/Tests" "$folder/.build" "$folder/bin"
        cp -r .ci "$folder"
        cp deploy/test "$folder/deploy"
        cp Tests/absent-vectors "$folder/Tests"
        export FOLDER=$folder PATH=$folder/bin:$PATH
        cat > "$folder/bin/swift" <<'END'
        #!/bin/bash
        echo "$FOLDER/bin"
        END
        cat > "$folder/bin/portcullisPackageTests.xctest" <<'END'
        #!/bin/bash
        found=0 filter=
        [[ $3 != --filter ]] || filter=$4
        # The names that the filter matches, among tests of the part that fails, or of all.
        while IFS= read -r name; do
            case $filter in
                '^HTTPScenarios') ending=$FIRST ;;
                '[./]'*)
                    ending=$AGAIN
                    id="Module.Suite/\`${name:1:-1}\`()"
                    [[ $name == \"* ]] || id=Module.Suite/$name
                    grep -qE -e "$filter" <<< "$id" || continue
                    printf 'again: %s\n' "$name" >> "$FOLDER/again"
                    ;;
                *) continue ;;
            esac
            found=$((found + 1))
            echo "◇ Test $name started."
            case $ending in
                passes) echo "✔ Test $name passed after 0.001 seconds." ;;
                crashes) kill -KILL $$ ;;
                fails)
                    echo "✘ Test $name recorded an issue at A.swift:1:1: Issue recorded"
                    echo "✘ Test $name with 2 test cases failed after 0.001 seconds with 1 issue."
                    bad=yes
                    ;;
            esac
        done <<< "$NAMES"
        if [[ ${bad:-no} == yes ]]; then
            echo "✘ Test run with $found tests in 1 suite failed after 0.001 seconds with 1 issue."
            exit 1
        fi
        echo "✔ Test run with $found tests in 1 suite passed after 0.001 seconds."
        END
        chmod +x "$folder"/bin/*
        cp "$folder/bin/swift" "$folder/bin/portcullis"

        """#

    /// What a run printed, with its status and what it left.
    private static func run(
        _ names: [String],
        first: Ending = .fails,
        again: Ending = .passes,
        options: String = ""
    ) throws -> [String] {
        let script = #"""
            export FIRST=\#(first) AGAIN=\#(again)
            NAMES=$(cat <<'END'
            \#(names.joined(separator: "\n"))
            END
            )
            export NAMES
            status=0
            "$folder/deploy/test" --no-build \#(options) 2>&1 || status=$?
            echo "status: $status"
            sed 's/^/kept: /' "$folder/.build/unstable-tests" 2> /dev/null || true
            cat "$folder/again" 2> /dev/null || true
            """#
        return try WorkflowTests.printed(by: stage + script).split(separator: "\n").map(String.init)
    }

    private static let claim = #""a claim""#

    @Test func `a test that fails once and then passes is unstable, and the run passes`() throws {
        let lines = try Self.run([Self.claim])
        #expect(lines.contains("status: 0"), "\(lines)")
        #expect(lines.contains("unstable: \(Self.claim)"))
        #expect(lines.contains("kept: unstable: \(Self.claim)"))
        expectEqual(lines.count { $0.hasPrefix("again: ") }, 1)
        // The reason why it failed at first is not lost.
        #expect(lines.contains { $0.contains("A.swift:1:1") })
    }

    @Test func `a test that fails twice fails the run`() throws {
        let lines = try Self.run([Self.claim], again: .fails)
        #expect(lines.contains("status: 1"), "\(lines)")
        #expect(lines.contains("failed: \(Self.claim)"))
        #expect(!lines.contains { $0.hasPrefix("unstable: ") || $0.hasPrefix("kept: ") })
        expectEqual(lines.count { $0.hasPrefix("again: ") }, 1)
    }

    @Test func `a test that crashes when it runs again fails the run`() throws {
        let lines = try Self.run([Self.claim], again: .crashes)
        #expect(lines.contains("status: 1"), "\(lines)")
        #expect(lines.contains("failed: \(Self.claim)"))
    }

    @Test(arguments: [3, 4])
    func `three unstable tests are accepted, and a fourth fails the run`(count: Int) throws {
        let names = (0..<count).map { "test\($0)(value:)" }
        let lines = try Self.run(names)
        #expect(lines.contains("status: \(count == 3 ? 0 : 1)"), "\(lines)")
        expectEqual(lines.count { $0.hasPrefix("unstable: ") }, count == 3 ? 3 : 0)
        expectEqual(lines.count { $0.hasPrefix("again: ") }, count == 3 ? 3 : 0)
    }

    @Test func `a crash of the test program is not tried again`() throws {
        let lines = try Self.run([Self.claim], first: .crashes)
        #expect(lines.contains("status: 1"), "\(lines)")
        #expect(!lines.contains { $0.hasPrefix("again: ") || $0.hasPrefix("unstable: ") })
        #expect(lines.contains("not ended: Test \(Self.claim)"))
    }

    @Test func `the test that failed runs again, and none whose name is similar`() throws {
        let odd = #""say "hi" (once) to [a-z]* | $HOME, `id` & 'it'\d.""#
        let script = #"""
            scratch=$(mktemp -d)
            source .ci/retries.bash
            name=\#(Self.quoted(odd))
            pattern=$(pattern_of "$name")
            name=${name:1:-1}
            printf 'M.S/`%s`()\n' "$name" "${name%?}x" "x$name" \
                | grep -E -e "$pattern"
            """#
        let name = odd.dropFirst().dropLast()
        try expectEqual(WorkflowTests.printed(by: script), "M.S/`\(name)`()\n")
        let lines = try Self.run([odd])
        #expect(lines.contains("status: 0"), "\(lines)")
        #expect(lines.contains("unstable: \(odd)"))
    }

    @Test func `rounds count how often each test was unstable`() throws {
        let lines = try Self.run([Self.claim], options: "--rounds 2")
        #expect(lines.contains("status: 0"), "\(lines)")
        #expect(lines.contains("      2 unstable: \(Self.claim)"), "\(lines)")
    }

    /// A text as a word of the shell.
    private static func quoted(_ text: String) -> String {
        "'" + text.replacing("'", with: "'\\''") + "'"
    }
}
