/// Words that stand for a habit we do without.
struct TokenCheck {
    /// Whether the file belongs to a program, which may print.
    let isProgram: Bool

    /// The tokens that something may begin with. There are millions, and few begin anything.
    private static let beginnings: Set<String> = {
        let words: Set<String> = [
            "!", ".", "@", "Date", "DispatchQueue", "OpaquePointer", "debugPrint", "dump",
            "fatalError", "for", "nanosleep", "nonisolated", "print", "sleep", "usleep",
        ]
        return words.union(Held.impureFoundation).union(Held.impureTypes)
    }()

    func findings(in source: SwiftSource) -> [Finding] {
        let places = source.tokens.indices.filter {
            Self.beginnings.contains(source.tokens[$0].text)
        }
        return places.flatMap { finding($0, in: source) } + remarks(in: source)
    }

    /// What begins with a token of ``beginnings``.
    private func finding(_ index: Int, in source: SwiftSource) -> [Finding] {
        let token = source.token(index)
        let found: [Finding?] =
            switch token.text {
            case "!": [forced(index, in: source)]
            case "@":
                [
                    unchecked(index, in: source), exclusivity(index, in: source),
                    test(index, in: source),
                ]
            case "nonisolated": [unchecked(index, in: source)]
            case "DispatchQueue": [cleared(index, in: source)]
            case "OpaquePointer": [pointer(index, in: source)]
            case "for": [counted(index, in: source)]
            case ".": [waited(index, in: source)]
            case "Date": [clock(index, in: source), waited(index, in: source)]
            default:
                token.kind == .word ? [called(index, in: source), clock(index, in: source)] : []
            }
        return found.compactMap { $0 }
    }

    /// `try!`, `as!`, `value!` and `Type!`. Tests may unwrap with `#require` and need none either.
    private func forced(_ index: Int, in source: SwiftSource) -> Finding? {
        let token = source.token(index)
        guard !source.isTest, source.reads(index, "!"), !token.isSpacedBefore, index > 0 else {
            return nil
        }
        let before = source.token(index, -1)
        if before.text == "try" {
            return source.finding(token.line, "`try!`: catch the error or pass it on")
        }
        if before.text == "as" {
            return source.finding(token.line, "`as!`: write `as?` and say what happens otherwise")
        }
        let isComparison = source.reads(index + 1, "=") && !source.token(index, 1).isSpacedBefore
        let isOperand =
            before.kind != .punctuation || [")", "]", "}", "?", ">"].contains(before.text)
        guard isOperand, !isComparison else { return nil }
        return source.finding(
            token.line,
            "`!` unwraps by force: write `guard let … else`, or `preconditionFailure(\"owner: …\")`"
        )
    }

    private func called(_ index: Int, in source: SwiftSource) -> Finding? {
        let token = source.token(index)
        guard token.kind == .word, source.reads(index + 1, "("),
            !source.reads(index - 1, "func")
        else { return nil }
        switch token.text {
        case "fatalError" where !source.isTest:
            return source.finding(
                token.line,
                "`fatalError`: throw, or `preconditionFailure(\"owner: what was assumed\")`"
            )
        case "sleep", "usleep", "nanosleep":
            guard !Held.clocks.contains(source.path) else { return nil }
            return source.finding(
                token.line,
                "`\(token.text)`: wait for the event itself, or take a clock that the test advances"
            )
        case "print", "debugPrint", "dump":
            guard !isProgram, !source.isTest, !source.reads(index - 1, ".") else { return nil }
            return source.finding(
                token.line,
                "`\(token.text)` in a library: return the text or count it in Telemetry"
            )
        default: return nil
        }
    }

    /// Grand central queues that nobody owns.
    private func cleared(_ index: Int, in source: SwiftSource) -> Finding? {
        guard source.reads(index, "DispatchQueue", ".", "global") else { return nil }
        return source.finding(
            source.token(index).line,
            "`DispatchQueue.global`: make a queue with a label and an owner"
        )
    }

    private func unchecked(_ index: Int, in source: SwiftSource) -> Finding? {
        let isUnchecked = source.reads(index, "@", "unchecked", "Sendable")
        let isNonisolated = source.reads(index, "nonisolated", "(", "unsafe", ")")
        guard isUnchecked || isNonisolated else { return nil }
        let line = source.token(index).line
        guard source.isTest || Held.unchecked[source.path] != nil else {
            return source.finding(line, "not in the list of Tests/TidyTests/Support/Held.swift")
        }
        let remark = source.remark(at: line).lowercased()
        guard remark.isEmpty || isUnchecked && !source.isTest && !remark.contains("unchecked")
        else {
            return nil
        }
        let word = isUnchecked ? "`@unchecked Sendable`: …" : "`nonisolated(unsafe)`: …"
        return source.finding(line, "no proof above it: write /// \(word)")
    }

    private func exclusivity(_ index: Int, in source: SwiftSource) -> Finding? {
        guard source.reads(index, "@", "exclusivity"), Held.exclusivity[source.path] == nil
        else { return nil }
        return source.finding(
            source.token(index).line,
            "not in the list of values in Tests/TidyTests/Support/Held.swift"
        )
    }

    private func clock(_ index: Int, in source: SwiftSource) -> Finding? {
        let isNow = source.reads(index, "Date", "(", ")")
        if Held.foundationFiles[source.path] != nil,
            isNow || Held.impureFoundation.contains(source.token(index).text)
        {
            return source.finding(
                source.token(index).line,
                "Foundation stands in this file for names alone: take what it reads as a parameter"
            )
        }
        guard Held.isPure(source), Held.lockingFiles[source.path] == nil,
            Held.runningFiles[source.path] == nil,
            source.token(index).kind == .word, Held.impureTypes.contains(source.token(index).text)
        else { return nil }
        return source.finding(
            source.token(index).line,
            "this part is pure: take the time or the number as a parameter, and lock nothing"
        )
    }

    /// `for _ in 0..<N where condition`: it goes on counting once the condition has changed.
    private func counted(_ index: Int, in source: SwiftSource) -> Finding? {
        guard source.isTest, source.reads(index, "for", "_", "in") else { return nil }
        var place = index + 3
        while place < source.tokens.count, !source.reads(place, "{") {
            if source.reads(place, "where") {
                return source.finding(
                    source.token(index).line,
                    "counts tries: wait with `eventually { … }`, or `break` where it is over"
                )
            }
            place += 1
        }
        return nil
    }

    /// `Date() < deadline` and `.now < deadline`: a wait of a test's own.
    private func waited(_ index: Int, in source: SwiftSource) -> Finding? {
        guard source.reads(index, "Date") || source.reads(index + 1, "now"),
            source.isTest, !Held.waits.contains(source.path),
            source.reads(index, "Date", "(", ")", "<") || source.reads(index, ".", "now", "<")
        else { return nil }
        return source.finding(
            source.token(index).line,
            "a wait of its own: `eventually { … }` has the deadline and the pause"
        )
    }

    private func test(_ index: Int, in source: SwiftSource) -> Finding? {
        guard source.isTest, source.reads(index, "@", "Test") else { return nil }
        var place = index + 2
        if source.reads(place, "(") { place = source.closing(place) + 1 }
        while place < source.tokens.count, !source.reads(place, "func") {
            guard source.token(place).kind == .word || source.reads(place, "@") else { return nil }
            place += 1
        }
        guard source.token(place, 1).kind == .word else { return nil }
        return source.finding(
            source.token(place).line,
            "a test's name is its claim: func `a spent challenge is refused`()"
        )
    }

    /// A C type in a signature that another target sees.
    private func pointer(_ index: Int, in source: SwiftSource) -> Finding? {
        guard !source.isTest, source.reads(index, "OpaquePointer") else { return nil }
        let token = source.token(index)
        var place = index
        while place > 0, source.token(place, -1).line == token.line { place -= 1 }
        guard ["public", "package"].contains(source.token(place).text) else { return nil }
        return source.finding(token.line, "a C type in the signature: wrap it in a type of ours")
    }

    private func remarks(in source: SwiftSource) -> [Finding] {
        // Spelled apart, so that this file does not find itself.
        let owned = "TO" + "DO"
        return source.comments.compactMap { comment in
            let words = comment.text.split { !$0.isLetter && $0 != "(" && $0 != ")" }
            for word in words
            where word.hasPrefix(owned) || word == "FIX" + "ME" || word == "XX" + "X" {
                if word.hasPrefix(owned + "("), word.hasSuffix(")"), word.count > owned.count + 2 {
                    continue
                }
                return source.finding(
                    comment.firstLine,
                    "write `\(owned)(owner): what, and when it can go`"
                )
            }
            return nil
        }
    }
}
