import Encodings
import HTTPWire
import Rules
import Verification

/// `POST /device-check/…`: asks Apple about a device, for an origin that does so by itself.
struct DeviceCallService: Service {
    let task: DeviceCall.Task
    let devices: any DeviceCalling

    func answer(_ request: ServiceRequest) -> ServiceAnswer {
        do throws(JSONError) {
            let call = try DeviceCall(task, request.content.span)
            return .later { [task, devices] completion in
                devices.call(call) { completion(Self.result($0, of: task)) }
            }
        } catch {
            return .now(ServiceResult(.refused(.requestMalformed), "problems", [error.description]))
        }
    }

    private static func result(
        _ result: DeviceCallResult,
        of task: DeviceCall.Task
    ) -> ServiceResult {
        switch result {
        case .bits(let bits, let month):
            ServiceResult(json: .served) { document in
                document.member("bit0", bits.bit0)
                document.member("bit1", bits.bit1)
                if task == .query { document.member("last_update_time", month) }
            }
        case .genuine: ServiceResult(json: .served) { $0.member("genuine", true) }
        case .tokenRefused where task == .validate:
            ServiceResult(json: .served) { $0.member("genuine", false) }
        case .tokenRefused: ServiceResult(.refused(.deviceTokenMalformed))
        case .tokenUsed: ServiceResult(.refused(.deviceTokenUsed))
        case .unavailable(let word):
            ServiceResult(.refused(.deviceCheckUnavailable), "apple", [word])
        }
    }
}

extension ServiceEntry {
    static func deviceCalls(_ devices: any DeviceCalling) -> [ServiceEntry] {
        DeviceCall.Task.allCases.map { task in
            ServiceEntry(
                "device-check/\(task.rawValue)",
                [.post],
                takesContent: true,
                access: .call,
                DeviceCallService(task: task, devices: devices)
            )
        }
    }
}
