import Expectations
import Foundation
import LoopbackSockets
import ProvingGround
import Testing

/// The files of the cases, and how wrong ones are refused.
@Suite struct CaseReaderTests {
    /// A folder with one case, whose text this is.
    private func refusal(of text: String) throws -> String {
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "portcullis-cases-\(UUID().uuidString)")
        let group = folder.appending(path: "signing")
        try FileManager.default.createDirectory(at: group, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = group.appending(path: "case.yaml")
        try text.write(to: file, atomically: true, encoding: .utf8)
        do {
            _ = try CaseFolder(folder.path)
            return "accepted"
        } catch {
            return error.text.replacing(folder.path + "/", with: "")
        }
    }

    private static let head = "name: A claim\nwhy: A reason\nsection: the-key\n"

    static let wrong: [(text: String, says: String)] = [
        ("name: A claim\n", "signing/case.yaml:1: why: found no such key"),
        (
            head + "steps: [{ sned: {} }]\n",
            "signing/case.yaml:4: steps[0].sned: found an unknown key"
        ),
        (head + "steps: [{ send: {}, wait: 1 }]\n", "steps[0]: found 2 things to do"),
        (head + "steps: [{ wait: soon }]\n", "steps[0].wait: found \"soon\"; use a number"),
        (
            head + "steps:\n  - send: {}\n    expect: { keys: 3..1 }\n",
            "signing/case.yaml:6: steps[0].expect.keys: found \"3..1\"; use a number, or a range"
        ),
        (
            head + "steps:\n  - send: {}\n    expect: { answers: ansered 200 }\n",
            "steps[0].expect.answers: found \"ansered 200\"; use an outcome"
        ),
        (
            head + "middle: [{ at: orders, do: hang }]\nsteps: [{ send: {} }]\n",
            "signing/case.yaml:4: middle[0].at: found \"orders\"; use all | endpoints"
        ),
        (
            head + "device: [{ at: attest, do: twice }]\nsteps: [{ send: {} }]\n",
            "device[0].do: found twice; use fail | delay | hang"
        ),
        (
            head + "middle: [{ do: refuse, reason: moon }]\nsteps: [{ send: {} }]\n",
            "middle[0].reason: found \"moon\"; use a reason of the gateway's"
        ),
        (
            head + "steps: [{ send: { bytes: \"?\" } }]\n",
            "steps[0].send.bytes: found \"?\"; use base64"
        ),
        (
            head + "always: sometimes\nsteps: [{ send: {} }]\n",
            "signing/case.yaml:4: always: found"
        ),
        (head + "needs: [time]\nsteps: [{ send: {} }]\n", "needs[0]: found \"time\"; use clock"),
    ]

    @Test(arguments: wrong) func `a wrong file is refused with its place`(
        text: String,
        says: String
    ) throws {
        let refusal = try refusal(of: text)
        #expect(refusal.contains(says), "\(refusal)")
    }

    @Test func `a small case is accepted`() throws {
        expectEqual(try refusal(of: Self.head + "steps: [{ send: {} }]\n"), "accepted")
    }

    @Test func `all cases can be read, and each group has some`() throws {
        let cases = try CaseFolder(Place.cases).cases
        for group in CaseFolder.groups {
            #expect(cases.contains { $0.group == group }, "no case of \(group)")
        }
        expectEqual(Set(cases.map(\.name)).count, cases.count)
    }

    @Test func `each case names a heading of the machine's page`() throws {
        let page = try String(
            contentsOf: Place.root.appending(path: "Sources/client/docs/machine.md"),
            encoding: .utf8
        )
        let headings = page.split(separator: "\n").filter { $0.hasPrefix("## ") }.map { line in
            line.dropFirst(3).lowercased().replacing(" ", with: "-").replacing("'", with: "")
        }
        for proving in try CaseFolder(Place.cases).cases {
            #expect(headings.contains(proving.section), "\(proving.path): \(proving.section)")
        }
    }
}
