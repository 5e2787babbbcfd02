import Expectations
import Testing

// What the texts of the repository promise, tried: their commands print what they show, their links
// lead somewhere, and what has a table in the code has its place in the reference.

/// The commands in the texts.
@Suite(.enabled(if: Repository.hasPrograms)) struct CommandTests {
    @Test(arguments: Repository.texts)
    func `the commands of a text print what the text shows`(_ path: String) async throws {
        let document = try Document(path)
        let steps = Self.steps(of: document)
        guard !steps.isEmpty else { return }
        let before = try document.continued.map { Self.steps(of: try Document($0)) } ?? []
        let session = try Session()
        defer { session.end() }
        let printed = try await session.run(before + steps).dropFirst(before.count)
        for (step, printed) in zip(steps, printed) {
            let agree = Normalised.agree(step.prints, printed)
            #expect(
                agree,
                """
                \(path):\(step.line): \(step.commands.first ?? "") … printed
                \(printed.joined(separator: "\n"))
                """
            )
        }
    }

    private static func steps(of document: Document) -> [Step] {
        Step.all(of: document)
            .filter { NotExecuted.reason(document.path, $0.block) == nil }
            .flatMap(\.steps)
    }

    @Test func `every command that is not executed has its reason, and exists`() throws {
        for (path, reasons) in NotExecuted.reasons {
            let firsts = Step.all(of: try Document(path)).compactMap(\.block.lines.first)
            for (first, reason) in reasons {
                #expect(firsts.contains { NotExecuted.command($0) == first }, "\(path): \(first)")
                #expect(!reason.isEmpty)
            }
        }
    }

    @Test(arguments: [
        (["a"], ["a"], true), (["a"], ["b"], false), ([], ["a"], false), (["a"], [], false),
        (["…"], [], true), (["…"], ["a", "b"], true), (["a", "…", "c"], ["a", "b", "c"], true),
        (["a", "…", "c"], ["a", "b"], false), (["a … c"], ["a b c"], true),
        (["a … c"], ["a b d"], false), (["a…"], ["abc"], true), (["…c"], ["abd"], false),
        (["at 2026-01-01T00:00:00Z"], ["at 2027-12-31T23:59:59Z"], true),
        (["none of 3 replays"], ["none of 1,104 replays"], true), (["17"], ["18"], false),
        (["a"], ["a", ""], true),
    ])
    func `shown and printed lines agree`(_ shown: [String], _ printed: [String], _ agree: Bool) {
        expectEqual(Normalised.agree(shown, printed), agree)
    }
}
