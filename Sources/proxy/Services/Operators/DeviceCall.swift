import Encodings
import HTTPWire
package import KeyStore
package import Rules
package import Verification

/// An origin's own query about a device, on the operators' listener.
package struct DeviceCall: Sendable {
    /// The raw value is the path after `device-check/`.
    package enum Task: String, CaseIterable, Sendable {
        case query, update, validate
    }

    package let task: Task
    package let token: DeviceToken
    /// The environment of the app that made the token.
    package let environment: KeyEnvironment
    /// The team whose bits they are; `nil` for the only one.
    package let team: String?
    /// The change of the bits; ignored where the task is no update.
    package let change: DeviceChange

    /// Reads `{"device_token": …, "environment": …, "team": …, "bit0": …, "bit1": …}`. Only the
    /// token is mandatory, and for an update one of the bits. A bit that is null or absent stays.
    init(_ task: Task, _ text: Span<UInt8>) throws(JSONError) {
        var reader = JSONReader()
        var values: [String: JSONReader.Scalar] = [:]
        try reader.beginObject(text)
        while let bytes = try reader.nextName(text) {
            let name = String(decoding: bytes, as: UTF8.self)
            guard Self.names(task).contains(name) else {
                let names = Self.names(task).sorted().joined(separator: ", ")
                throw reader.error("unknown member; use \(names)")
            }
            guard values[name] == nil else { throw reader.error("\(name) is there twice") }
            values[name] = try reader.scalar(text)
        }
        try reader.end(text)
        guard case .string(let written) = values["device_token"],
            let token = DeviceToken(written.span)
        else {
            throw reader.error(
                "device_token is no device token; use base64, at most \(DeviceToken.textMax) bytes"
            )
        }
        var (environment, team) = (KeyEnvironment.production, String?.none)
        if let value = values["environment"] {
            guard case .string(let word) = value,
                let named = KeyEnvironment(rawValue: String(decoding: word, as: UTF8.self))
            else { throw reader.error("environment is none; use production or development") }
            environment = named
        }
        if let value = values["team"] {
            guard case .string(let id) = value else {
                throw reader.error("team is no string; use the team's id")
            }
            team = String(decoding: id, as: UTF8.self)
        }
        func bit(_ name: String) throws(JSONError) -> Bool? {
            switch values[name] {
            case nil, .null: nil
            case .boolean(let bit): bit
            case .string, .number: throw reader.error("\(name) is no bit; use true, false or null")
            }
        }
        change = DeviceChange(bit0: try bit("bit0"), bit1: try bit("bit1"))
        guard task != .update || !change.isEmpty else {
            throw reader.error("no bit is named; use bit0 or bit1 with true or false")
        }
        (self.task, self.token, self.environment, self.team) = (task, token, environment, team)
    }

    private static func names(_ task: Task) -> Set<String> {
        let all: Set = ["device_token", "environment", "team"]
        return task == .update ? all.union(["bit0", "bit1"]) : all
    }
}

/// The result of a call.
package enum DeviceCallResult: Sendable {
    /// The current or written bits, and the month of their last change, where Apple names it.
    case bits(DeviceBits, month: String?)
    /// Apple accepts the token.
    case genuine
    /// Apple does not accept the token.
    case tokenRefused
    /// The token was used before, with a request or with a call.
    case tokenUsed
    /// Apple did not answer; a word says why.
    case unavailable(String)
}

/// Makes calls about devices.
package protocol DeviceCalling: Sendable {
    /// `done` is called exactly once, on any thread, within a bounded time.
    func call(_ call: DeviceCall, _ done: @escaping @Sendable (DeviceCallResult) -> Void)
}

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
            return .now(
                ServiceResult(.refused(.requestMalformed), "problems", texts: [error.description])
            )
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
            ServiceResult(.refused(.deviceCheckUnavailable), "apple", texts: [word])
        }
    }
}

extension ServiceEntry {
    static func deviceCalls(_ devices: any DeviceCalling) -> [ServiceEntry] {
        DeviceCall.Task.allCases.map { task in
            ServiceEntry(
                "device-check/\(task.rawValue)",
                [.post],
                on: .init(takesContent: true, access: .call),
                by: DeviceCallService(task: task, devices: devices)
            )
        }
    }
}
