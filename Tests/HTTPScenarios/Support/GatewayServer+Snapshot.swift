import Dispatch
import LoopbackKit
import Services
import Synchronization
import TestSupport
import Testing

@testable import Gateway

extension GatewayServer {
    /// What the admin listener would show.
    func snapshot() throws -> AdminSnapshot {
        let found = Mutex<AdminSnapshot?>(nil)
        let gate = Gate()
        gather { snapshot in
            found.withLock { $0 = snapshot }
            gate.open()
        }
        try gate.pass()
        return try #require(found.withLock { $0 })
    }

    /// Asks again and again until this holds.
    func wait(until isTrue: (AdminSnapshot) throws -> Bool) throws {
        guard try eventually({ try isTrue(try snapshot()) }) else { throw WireFault.timedOut }
    }

    /// Reads the configuration again, as HUP has it.
    func readAgain() { plane.perform { [reloads] in reloads.reload() } }
}
