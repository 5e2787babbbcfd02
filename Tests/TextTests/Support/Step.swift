/// Commands of a text, and what the text says that they print.
struct Step {
    /// Lines for the shell.
    let commands: [String]
    let prints: [String]
    /// The line of the text at which it begins.
    let line: Int

    /// The steps of a document, in order.
    ///
    /// - A `sh` block is one step. A `text` block that follows with nothing in between is what it
    ///   prints; without one it prints nothing.
    /// - A `console` block is a step for each line that begins with `$ `. A command goes on in the
    ///   next line after a backslash, and to the end of a `<<'END'` document; what follows is
    ///   what it prints.
    /// - A `yaml` block whose first line is a comment with a path, `# rules/10-orders.yaml`, is
    ///   that file: it is written where it stands in the order.
    static func all(of document: Document) -> [(block: Document.Block, steps: [Step])] {
        document.blocks.indices.compactMap { index in
            let block = document.blocks[index]
            switch block.kind {
            case "console": return (block, steps(ofConsole: block))
            case "sh":
                let next = document.blocks.dropFirst(index + 1).first
                let prints = next.flatMap { $0.kind == "text" && $0.followsBlock ? $0.lines : nil }
                return (
                    block,
                    [Step(commands: block.lines, prints: prints ?? [], line: block.line)]
                )
            case "yaml": return file(block).map { (block, [$0]) }
            default: return nil
            }
        }
    }

    private static func file(_ block: Document.Block) -> Step? {
        guard let path = block.lines.first?.wholeMatch(of: /# ([\w\-\/.]+\.yaml)/)?.1 else {
            return nil
        }
        let write = ["mkdir -p \"$(dirname \(path))\"", "cat > \(path) <<'END'"]
        return Step(commands: write + block.lines + ["END"], prints: [], line: block.line)
    }

    private static func steps(ofConsole block: Document.Block) -> [Step] {
        var steps: [Step] = []
        var commands: [String] = []
        var prints: [String] = []
        var start = block.line
        var isOpen = false
        var end: String?
        func close() {
            if !commands.isEmpty {
                steps.append(Step(commands: commands, prints: prints, line: start))
            }
            (commands, prints) = ([], [])
        }
        for (index, line) in block.lines.enumerated() {
            if let word = end {
                commands.append(line)
                if line == word { end = nil }
            } else if isOpen {
                commands.append(line)
                isOpen = line.hasSuffix("\\")
            } else if line.hasPrefix("$ ") {
                close()
                start = block.line + index + 1
                commands = [String(line.dropFirst(2))]
                isOpen = line.hasSuffix("\\")
                end = line.firstMatch(of: /<<'(\w+)'/).map { String($0.1) }
            } else {
                prints.append(line)
            }
        }
        close()
        return steps
    }
}
