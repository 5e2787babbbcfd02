import Foundation
import HTTPWire
import Rules
import Testing

@testable import Proxy

extension Transcript {
    static let all =
        heads + services + decisions + verdicts + devices + holdings + uploads + connects + retries
        + originFailures + tokens
        + responses
}

@Suite struct RequestFlowTests {
    @Test(arguments: Transcript.all)
    func `a request goes its way`(_ transcript: Transcript) {
        transcript.play(expects: true)
    }

    /// The story in Flow.swift says where each state leaves to.
    @Test func `the transcripts take every way out of every state, and no other`() throws {
        var taken: Set<Transcript.Step> = []
        for transcript in Transcript.all { taken.formUnion(transcript.play(expects: false)) }
        let declared = try Diagram.read()
        // A client may go at any time before the end; one transcript of that is enough a state.
        let gone = Set(declared.filter { $0.to == "over" })
        let missing = declared.subtracting(taken).subtracting(gone)
        #expect(missing.isEmpty, "no transcript goes \(missing.map(\.description).sorted())")
        let stray = taken.subtracting(declared)
        #expect(stray.isEmpty, "no comment tells of \(stray.map(\.description).sorted())")
    }

    @Test(arguments: Transcript.all)
    func `a client may go after every event`(_ transcript: Transcript) {
        for count in 0...transcript.rows.count { transcript.break(behind: count) }
    }

    @Test func `an event that can't come stops the program`() async {
        await #expect(processExitsWith: .failure) {
            var flow = Flow(.get, fallback: .off)
            _ = flow.responseEnded()
        }
    }
}
