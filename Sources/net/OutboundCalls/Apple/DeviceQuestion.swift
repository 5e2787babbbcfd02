import Encodings
package import KeyStore
package import Rules
package import Verification

/// A query to DeviceCheck about a device (Apple, "Accessing and modifying per-device data").
package enum DeviceQuestion: Hashable, Sendable {
    /// Asks for its two bits.
    case query
    /// Stores these bits. Apple takes both, and a missing bit is lost.
    case update(DeviceBits)
    /// Asks whether the token is genuine.
    case validate

    package var service: AppleService {
        switch self {
        case .query: .queryBits
        case .update: .updateBits
        case .validate: .validateToken
        }
    }

    /// The call's content.
    ///
    /// - transaction: the unique name of the call.
    /// - milliseconds: the wall clock since 1970. Apple refuses a wrong time.
    package func body(_ token: DeviceToken, transaction: String, at milliseconds: Int64) -> [UInt8]
    {
        var json = JSONWriter()
        json.object { json in
            json.member("device_token", token.text)
            json.member("transaction_id", transaction)
            json.member("timestamp", milliseconds)
            switch self {
            case .query, .validate: break
            case .update(let bits):
                json.member("bit0", bits.bit0)
                json.member("bit1", bits.bit1)
            }
        }
        return json.bytes
    }
}

/// A device in a query to DeviceCheck.
package struct NamedDevice: Hashable, Sendable {
    package let token: DeviceToken
    /// The environment of the app that made the token: the host of the other environment does not
    /// know the token.
    package let environment: KeyEnvironment
    /// The team whose bits they are; `nil` for the only team.
    package let teamID: String?

    package init(_ token: DeviceToken, _ environment: KeyEnvironment, teamID: String?) {
        self.token = token
        self.environment = environment
        self.teamID = teamID
    }

    /// The call that asks about it.
    package func call(
        _ question: DeviceQuestion,
        transaction: String,
        at milliseconds: Int64,
        timeout: Duration
    ) -> AppleCall {
        AppleCall(
            service: question.service,
            environment: environment,
            teamID: teamID,
            body: question.body(token, transaction: transaction, at: milliseconds),
            contentType: "application/json",
            timeout: timeout
        )
    }
}
