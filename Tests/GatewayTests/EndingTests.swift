import Expectations
import Testing

@testable import Gateway

/// Transcripts of the end of a gateway.
@Suite struct EndingTests {
    private static let second: UInt64 = 1_000_000_000

    @Test func `without a lame-duck time a stop drains at once`() {
        var ending = Ending()
        #expect(!ending.hasBegun)
        expectEqual(ending.stopped(lameDuck: .zero, now: 0), .announceAndDrain)
        ending.drainBegan(loops: 2, now: 0)
        #expect(ending.isDraining)
        expectEqual(ending.loopEmptied(), .none)
        #expect(ending.hasClients)
        expectEqual(ending.loopEmptied(), .endCalls)
        #expect(!ending.hasClients)
    }

    @Test func `a lame duck serves on until its time has passed`() {
        var ending = Ending()
        let time = Duration.seconds(5)
        expectEqual(ending.stopped(lameDuck: time, now: 0), .serveAsLameDuck(time))
        #expect(ending.hasBegun)
        #expect(!ending.isDraining)
        expectEqual(ending.lameDuckPassed(), .drain)
    }

    @Test func `a second stop ends the lame-duck time, and a third changes nothing`() {
        var ending = Ending()
        _ = ending.stopped(lameDuck: .seconds(5), now: 0)
        expectEqual(ending.stopped(lameDuck: .seconds(5), now: Self.second), .drain)
        ending.drainBegan(loops: 1, now: Self.second)
        expectEqual(ending.stopped(lameDuck: .seconds(5), now: Self.second), .none)
        // Its timer comes late.
        expectEqual(ending.lameDuckPassed(), .none)
    }

    @Test func `the time that is left falls, and is never negative`() {
        var ending = Ending()
        func left(_ now: UInt64) -> Duration {
            ending.left(lameDuck: .seconds(5), drain: .seconds(10), now: now * Self.second)
        }
        expectEqual(left(100), .seconds(15))
        _ = ending.stopped(lameDuck: .seconds(5), now: 0)
        expectEqual(left(2), .seconds(13))
        ending.drainBegan(loops: 1, now: 5 * Self.second)
        expectEqual(left(6), .seconds(9))
        expectEqual(left(60), .zero)
    }
}
