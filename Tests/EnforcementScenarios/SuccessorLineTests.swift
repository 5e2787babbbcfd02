import Dispatch
import Expectations
import Glibc
import LoopbackKit
import TestSupport
import Testing

@testable import Gateway

/// What an old process asks the one that has taken over.
@Suite struct SuccessorLineTests {
    /// Found as: a process that was stopped for two seconds asked its successor nothing any more.
    @Test func `an answer that comes as its wait ends leaves the line in use`() throws {
        let (own, other) = try #require(HandoverSocket.pair())
        defer { shutdown(other.descriptor, Int32(SHUT_RDWR)) }
        DispatchQueue(label: "successor").async {
            while case .message(let message, _) = other.receive(within: nil) {
                guard case .question(let number, let content) = message else { continue }
                _ = other.send(.answer(number, content))
            }
        }
        let line = SuccessorLine(own)
        line.start { _ in }
        // No answer is delivered before this one has been.
        let gate = Gate()
        line.ask([1]) { _ in try? gate.pass() }
        expectEqual(line.ask([2]), nil)
        gate.open()
        // Where a busy machine has delayed the answer itself, this works once it has come.
        #expect(eventually { line.ask([3]) == [3] })
    }
}
