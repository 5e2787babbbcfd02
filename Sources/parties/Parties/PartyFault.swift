package import OutboundCalls

/// Why a party has said nothing of what it was asked about: it, or the gateway's settings, are at
/// fault, whatever was asked.
package enum PartyFault: Error, Hashable, Sendable {
    /// The party does not accept what proves who asks: a secret, an account, a key.
    case credentialRefused
    /// The party does not know what is asked, or answers with a redirect, which is not followed.
    case callRefused
    /// The party reports too many calls.
    ///
    /// - retryAfter: seconds that it asks to wait, where it names them.
    case tooMany(retryAfter: Int? = nil)
    /// The party reports a fault of its own.
    case broken(retryAfter: Int? = nil)
    /// An answer without documented form.
    case unreadable
    /// There was no answer.
    case unanswered(CallFailure)

    /// The fault that a reply shows whatever was asked; `nil` where its party reads the reply.
    package init?(_ reply: CallReply) {
        switch reply {
        case .unsent(let failure), .failed(let failure): self = .unanswered(failure)
        case .answered(429, let seconds, _): self = .tooMany(retryAfter: seconds)
        case .answered(500..., let seconds, _): self = .broken(retryAfter: seconds)
        case .answered: return nil
        }
    }

    /// The label of metrics and the word of the log: add, do not rename.
    ///
    /// - credential: the party's name of what proves who asks.
    package func word(_ credential: String) -> String {
        switch self {
        case .credentialRefused: "\(credential)-refused"
        case .callRefused: "call-refused"
        case .tooMany: "too-many"
        case .broken: "server-error"
        case .unreadable: "unreadable"
        case .unanswered(let failure): failure.rawValue
        }
    }

    /// Whether the same call may succeed a little later.
    package var mayPass: Bool {
        switch self {
        case .callRefused, .credentialRefused: false
        case .tooMany, .broken, .unreadable: true
        case .unanswered(let failure):
            switch failure {
            case .noCredential, .noHost, .stopping: false
            case .queueFull, .queueTimeout, .breakerOpen, .unreachable, .tls, .timeout, .broken,
                .answerTooLong, .garbled:
                true
            }
        }
    }

    /// The time that the party asks to wait; `nil` where it names none.
    package var retryAfter: Duration? {
        switch self {
        case .tooMany(let seconds), .broken(let seconds): seconds.map { .seconds($0) }
        case .callRefused, .credentialRefused, .unreadable, .unanswered: nil
        }
    }

    /// The next step for the operator of a proof; `nil` where there is nothing to mend.
    ///
    /// - credential: the step where the party does not accept the credential.
    /// - quota: where the party has its limit of calls.
    package func next(credential: String, quota: String) -> String? {
        switch self {
        case .credentialRefused: credential
        case .callRefused: "see url of the proof; a redirect is not followed"
        case .tooMany: "lower rate of the proof, or raise the quota \(quota)"
        case .broken: "wait: the service has a fault"
        case .unreadable: "see what is between this machine and the service"
        case .unanswered(let failure):
            switch failure {
            case .queueFull, .queueTimeout: "raise rate, concurrent or queue of the proof"
            case .unreachable: "see this machine's names, routes and firewall"
            case .tls: "see roots of the proof, or this machine's certificates"
            case .timeout: "see the network, or raise timeout of the proof"
            case .broken, .garbled, .answerTooLong:
                "see what is between this machine and the service"
            case .breakerOpen, .stopping, .noCredential, .noHost: nil
            }
        }
    }
}
