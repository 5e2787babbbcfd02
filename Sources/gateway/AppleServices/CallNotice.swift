package import KeyStore

/// What operators are told of calls to Apple.
package enum CallNotice: Hashable, Sendable {
    /// A call ended like this; so many calls before it ended alike since that was last told.
    case ended(AppleService, KeyEnvironment, AppleReply.Summary, untold: UInt64)
    /// The host is left alone, tried again, or works again.
    case breaker(AppleHost, CallBreaker.Condition)
}

extension AppleReply {
    /// A reply without its content.
    package enum Summary: Hashable, Sendable {
        case status(Int)
        case unsent(AppleFault)
        case failed(AppleFault)
    }

    package var summary: Summary {
        switch self {
        case .answered(let status, _, _): .status(status)
        case .unsent(let fault): .unsent(fault)
        case .failed(let fault): .failed(fault)
        }
    }
}

/// Which of many events are told: of those that are alike, one a minute.
package struct NoticePace<Kind: Hashable & Sendable>: Sendable {
    private struct Told {
        var at: UInt64
        var untold: UInt64 = 0
    }

    /// How long nothing is said of another one: a minute.
    package static var quietNanoseconds: UInt64 { 60_000_000_000 }

    private var told: [Kind: Told] = [:]

    package init() {}

    /// Whether to tell of this event: how many that are alike were not told since the last one;
    /// `nil` for nothing.
    package mutating func untold(of kind: Kind, now: UInt64) -> UInt64? {
        let untold = told[kind]?.untold ?? 0
        if let last = told[kind], now &- last.at < Self.quietNanoseconds {
            told[kind]?.untold = untold &+ 1
            return nil
        }
        told[kind] = Told(at: now)
        return untold
    }
}

/// What the ends of calls that are alike have in common. A host that fails makes many of them.
struct CallEndKind: Hashable, Sendable {
    let service: AppleService
    let environment: KeyEnvironment
    let status: String
}

extension NoticePace<CallEndKind> {
    /// What to tell of this end; `nil` for nothing.
    mutating func notice(_ call: AppleCall, _ reply: AppleReply, now: UInt64) -> CallNotice? {
        let kind = CallEndKind(
            service: call.service,
            environment: call.environment,
            status: reply.statusText
        )
        return untold(of: kind, now: now).map { untold in
            .ended(call.service, call.environment, reply.summary, untold: untold)
        }
    }
}
