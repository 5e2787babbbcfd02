import Encodings
import HTTPWire

/// Hands over to another process, on the operators' listener.
package protocol Handing: Sendable {
    /// Starts the program again and hands over to it. `done` is called once, on any thread.
    func upgrade(_ done: @escaping @Sendable (UpgradeReport) -> Void)
}

/// The result of an upgrade.
package enum UpgradeReport: Equatable, Sendable {
    /// Another process serves. During the pause no connection was accepted.
    case done(process: Int32, pauseMicroseconds: UInt64)
    /// Nothing has changed, and why.
    case refused(String)
}

/// `POST /upgrade`.
struct UpgradeService: Service {
    let gateway: any Handing

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        .later { [gateway] completion in
            gateway.upgrade { completion(Self.result($0)) }
        }
    }

    private static func result(_ report: UpgradeReport) -> ServiceResult {
        switch report {
        case .done(let process, let microseconds):
            ServiceResult(json: .served) { document in
                document.member("process", Int(process))
                document.member("pause_microseconds", Int(clamping: microseconds))
            }
        case .refused(let why): ServiceResult(.fault(.upgradeRefused), "problems", [why])
        }
    }
}

extension ServiceEntry {
    static func upgrading(_ gateway: any Handing) -> ServiceEntry {
        ServiceEntry("upgrade", [.post], access: .call, UpgradeService(gateway: gateway))
    }
}
