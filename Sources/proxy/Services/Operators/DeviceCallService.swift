import HTTPWire
import JSONText
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
            return .now(Self.refused(.requestMalformed, "problems", error.description))
        }
    }

    private static func result(
        _ result: DeviceCallResult,
        of task: DeviceCall.Task
    ) -> ServiceResult {
        switch result {
        case .bits(let bits, let month):
            document { document in
                document.member("bit0", bits.bit0)
                document.member("bit1", bits.bit1)
                if task == .query { document.member("last_update_time", month) }
            }
        case .genuine: document { $0.member("genuine", true) }
        case .tokenRefused where task == .validate: document { $0.member("genuine", false) }
        case .tokenRefused: ServiceResult(.refused(.deviceTokenMalformed))
        case .tokenUsed: ServiceResult(.refused(.deviceTokenUsed))
        case .unavailable(let word): refused(.deviceCheckUnavailable, "apple", word)
        }
    }

    /// - name: the member with the reason.
    private static func refused(
        _ refusal: Refusal,
        _ name: String,
        _ why: String
    ) -> ServiceResult {
        var details = LocalResponse.Details()
        details.list = (name, [why])
        return ServiceResult(LocalResponse(.refused(refusal), details))
    }

    private static func document(_ fill: (inout JSONWriter) -> Void) -> ServiceResult {
        var document = JSONWriter(.compact)
        document.object(nil, fill)
        return ServiceResult(LocalResponse(.served, "application/json", document.line))
    }
}

extension ServiceEntry {
    /// The calls about devices.
    static func deviceCalls(_ devices: any DeviceCalling) -> [ServiceEntry] {
        DeviceCall.Task.allCases.map { task in
            ServiceEntry(
                "device-check/\(task.rawValue)",
                [.post],
                takesContent: true,
                cost: .nothing,
                access: .call,
                DeviceCallService(task: task, devices: devices)
            )
        }
    }
}
