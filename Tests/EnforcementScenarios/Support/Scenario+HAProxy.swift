import LoopbackKit
import TestSupport

extension Scenario {
    /// Starts HAProxy with `haproxy.cfg`, and waits until it listens at a Unix socket.
    func startHAProxy(_ program: String, at path: String) throws {
        let child = try start(program, ["-db", "-V", "-f", "haproxy.cfg"])
        let _: Bool = try child.wait(for: "start of HAProxy") { printed, complained in
            (printed + complained).contains("polling mechanism") ? true : nil
        }
        // It binds what it listens at only then, and the name is there before it listens.
        guard eventually({ (try? Wire(path: path)) != nil }) else {
            throw ChildProcess.Failure(description: "HAProxy does not listen at \(path)")
        }
    }
}
