import JSONText
package import KeyStore
package import Rules
package import Verification

/// What DeviceCheck is asked about a device (Apple, "Accessing and modifying per-device data").
package enum DeviceQuestion: Hashable, Sendable {
    /// Its two bits.
    case query
    /// To keep these bits. Apple takes both, and a bit that is left out is lost.
    case update(DeviceBits)
    /// Whether the token is genuine.
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
    /// - transaction: names the call to Apple, and is unique.
    /// - milliseconds: the wall clock since 1970. Apple refuses a clock that is wrong.
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

/// A device as DeviceCheck is asked about it.
package struct NamedDevice: Hashable, Sendable {
    package let token: DeviceToken
    /// Of the app that made the token: a token of one is unknown to the other's host.
    package let environment: KeyEnvironment
    /// Whose bits they are; `nil` for the only team.
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
