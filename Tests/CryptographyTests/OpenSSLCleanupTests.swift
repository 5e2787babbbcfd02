import Foundation
import Synchronization
import Testing

@testable import Cryptography

/// The body runs in a process of its own, which ends while others of its threads use OpenSSL.
@Suite struct OpenSSLCleanupTests {
    private static let drawn = Atomic(0)

    private static func awaitDraws(_ count: Int) {
        let end = drawn.load(ordering: .relaxed) + count
        while drawn.load(ordering: .relaxed) < end { sched_yield() }
    }

    @Test func `a process ends well while its threads draw random bytes`() async {
        await #expect(processExitsWith: .success) {
            // Runs after OpenSSL's handler, which would be registered later.
            atexit { OpenSSLCleanupTests.awaitDraws(100) }
            OpenSSLCleanup.leaveToSystem()
            Thread {
                while true {
                    _ = RandomBytes.make(count: 64)
                    OpenSSLCleanupTests.drawn.add(1, ordering: .relaxed)
                }
            }.start()
            OpenSSLCleanupTests.awaitDraws(100)
            exit(0)
        }
    }
}
