import Gateway
import LoopbackKit
import Testing

extension Scenarios {
    /// What a service manager with a watchdog hears.
    struct WatchdogTests {
        @Test func `a loop that stands still silences the watchdog until it goes on`() throws {
            let folder = try TemporaryFolder.make()
            defer { TemporaryFolder.remove(folder) }
            let manager = try NoticeSocket(folder + "/notice")
            let environment = ["NOTIFY_SOCKET": folder + "/notice", "WATCHDOG_USEC": "60000"]
            let origin = try TestOrigin()
            defer { origin.stop() }
            let gateway = try TestGateway(
                [("shop", [origin.address])],
                loops: 2,
                supervisor: try Supervisor(environment)
            )
            defer { gateway.stop() }
            try manager.wait(for: "WATCHDOG=1")
            let door = try LoopDoor(gateway)
            try door.shut()
            // What was told before is still on its way, one round of it at most.
            var told = 0
            while told < 10, manager.next(within: 400) != nil { told += 1 }
            #expect(told < 10)
            manager.forget()
            door.open()
            try manager.wait(for: "WATCHDOG=1")
            door.remove()
        }

        @Test(arguments: ["relative", "vsock:2:1234", "@", ""])
        func `a notify socket of another kind is refused`(_ name: String) {
            #expect(throws: GatewayError.self) {
                try Supervisor(["NOTIFY_SOCKET": name])
            }
        }
    }
}
