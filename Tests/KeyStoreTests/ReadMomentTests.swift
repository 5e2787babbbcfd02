import Synchronization
import Testing

@testable import KeyStore

/// For how long what was read of others' changes counts.
@Suite struct ReadMomentTests {
    private final class Clock: Sendable {
        private let start = ContinuousClock.now
        private let passed = Mutex(Duration.zero)

        var now: ContinuousClock.Instant { start + passed.withLock { $0 } }

        func advance(_ duration: Duration) { passed.withLock { $0 += duration } }
    }

    @Test func `what was read counts for its time and no longer, from before the reading on`() {
        let clock = Clock()
        let moment = ReadMoment(lifetime: .seconds(3)) { clock.now }
        let counts1 = moment.counts
        #expect(counts1)
        clock.advance(.seconds(3))
        let counts2 = moment.counts
        #expect(counts2)
        clock.advance(.nanoseconds(1))
        let counts3 = moment.counts
        #expect(!counts3)
        // A reading that takes two seconds is that old when it ends.
        let asked = moment.now
        clock.advance(.seconds(2))
        moment.note(asked)
        let counts4 = moment.counts
        #expect(counts4)
        clock.advance(.seconds(1))
        let counts5 = moment.counts
        #expect(counts5)
        clock.advance(.nanoseconds(1))
        let counts6 = moment.counts
        #expect(!counts6)
    }

    @Test func `a reading that ends behind a later one makes nothing older`() {
        let clock = Clock()
        let moment = ReadMoment(lifetime: .seconds(3)) { clock.now }
        let first = moment.now
        clock.advance(.seconds(2))
        let second = moment.now
        clock.advance(.seconds(2))
        moment.note(second)
        moment.note(first)
        let counts7 = moment.counts
        #expect(counts7)
    }

    @Test func `centuries overflow nothing`() {
        let clock = Clock()
        let moment = ReadMoment(lifetime: .seconds(60)) { clock.now }
        clock.advance(.seconds(60 * 60 * 24 * 365 * 140))
        let counts8 = moment.counts
        #expect(!counts8)
        moment.note(moment.now)
        let counts9 = moment.counts
        #expect(counts9)
    }

    @Test func `without a lifetime it counts for ever`() {
        let clock = Clock()
        let moment = ReadMoment(lifetime: nil) { clock.now }
        clock.advance(.seconds(1_000_000))
        let counts10 = moment.counts
        #expect(counts10)
    }
}
