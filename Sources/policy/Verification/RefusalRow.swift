/// All that is said of a reason: a row of the table of ``Refusal``.
package struct RefusalRow: Sendable {
    /// What the gateway answers.
    package let answer: LocalRow
    /// What the reason is about.
    package let subject: Subject
    /// What it tells the rule's guard about the refused install.
    package let guardEvidence: GuardEvidence
    /// A sentence for operators, as Markdown of the folder `rules/docs`. Where nothing is written,
    /// the answer's title says all.
    package private(set) var meaning: String

    init(_ subject: Subject, _ evidence: GuardEvidence, _ answer: LocalRow) {
        (self.subject, guardEvidence, self.answer) = (subject, evidence, answer)
        meaning = answer.title
    }

    /// The row with a sentence for operators that says more than the title.
    consuming func meaning(_ sentence: String) -> RefusalRow {
        meaning = sentence
        return self
    }

    /// What is answered where the call is one of the enrolment endpoints. Nothing is signed there,
    /// and Apple attests a key only once: where a request would be signed again, only a new key
    /// helps.
    package var answerToEnrolment: LocalRow {
        guard answer.nextStep == .signAgain else { return answer }
        return LocalRow(answer.status, answer.blame, .enrol, answer.title, answer.companion)
    }
}

extension RefusalRow {
    /// What a reason is about. Reasons of one subject obey a rule's mode alike.
    package enum Subject: CaseIterable, Sendable {
        /// Whether there is a proof, and whether it holds.
        case proof
        case key
        /// Whether the content is what was signed.
        case content
        case device
        /// A token of `proofs`.
        case token
        case session
        /// A CORS preflight.
        case preflight
        /// How often one device makes requests.
        case rate
        /// What the verdict can't do without.
        case store
        /// How long the content is.
        case length
        /// Whether there is room to hold the content.
        case room
        /// Which request the origin will execute: rules refuse it before it is judged.
        case dispute
        case rule
        case address
        /// Attestations, and calls of the gateway's own endpoints. No rule is asked.
        case enrolment

        /// Whether another proof may be taken: the fault is not one of the request itself, or of
        /// what its sender has used up.
        package var isOfProof: Bool {
            switch self {
            case .proof, .key, .content, .device, .session, .store: true
            case .token, .preflight, .rate, .length, .room, .dispute, .rule, .address: false
            // No rule gives them.
            case .enrolment: false
            }
        }

        /// Whether the mode of a rule decides if the request is refused, and why, as Markdown of
        /// the folder `rules/docs`; `nil` where no rule is asked.
        package var observed: (refused: String, why: String)? {
            switch self {
            case .proof: ("by the rule", "verdict about the proof")
            case .key: ("by the rule", "verdict about the key")
            case .content: ("by the rule", "verdict about the content")
            case .device: ("by the rule", "verdict about the device")
            case .token: ("by the rule", "verdict about a token")
            case .session: ("by the rule", "verdict about a session")
            case .preflight: ("by the rule", "verdict; never an answer")
            case .rate:
                ("by the rule", "verdict about [how often](rates.md) the device makes requests")
            case .store:
                (
                    "by the rule",
                    "the verdict is not known; `on_error` decides for those whom the rule enforces"
                )
            case .length:
                (
                    "by the rule",
                    """
                    the rule's `body.limit`; content that is held already goes on first, then the \
                    rest as it comes
                    """
                )
            case .room:
                (
                    "by the rule",
                    """
                    no room to hold content: it goes on unjudged. A file that fails once it holds \
                    content is the exception: what it held is lost, and the answer is 503
                    """
                )
            case .dispute:
                (
                    "by the rules",
                    """
                    [disputed](#disputed-requests); a registered method in another case and a \
                    nomination that RFC 9110 forbids are malformed: always
                    """
                )
            case .rule: ("by the rule", "only `deny` has it")
            case .address:
                (
                    """
                    always, from `limits.address_requests`; by the rule, from \
                    `limits.address_failures`
                    """,
                    """
                    the first protects gateway and origin, and is off unless you set it; the \
                    second only means that no more signatures are verified for the address
                    """
                )
            case .enrolment: nil
            }
        }
    }
}

/// What a refusal tells the rule's guard about the refused install.
package enum GuardEvidence: Sendable {
    /// The app has a fault, and its next try fails too.
    case broken
    /// An app that works gets it now and then, and its next try passes. It counts against the rule
    /// when no request of the install passes.
    case retried
    /// It says nothing about the app: the sender is unknown, the device is meant to be refused, or
    /// the fault is the gateway's. If these counted, the clients that the rule keeps out could make
    /// its guard fall.
    case none
}

// What most rows have in common.
extension RefusalRow {
    /// The app signs the request again.
    static func signAgain(_ subject: Subject, _ title: String) -> RefusalRow {
        let answer = LocalRow(401, .client, .signAgain, title, .authenticate)
        return RefusalRow(subject, .retried, answer)
    }

    /// The app makes a new key. It says nothing about the app: the key may be of any sender.
    static func enrol(_ title: String) -> RefusalRow {
        RefusalRow(.key, .none, LocalRow(401, .client, .enrol, title, .authenticate))
    }

    /// The app gets another token from its issuer.
    static func getToken(
        _ subject: Subject,
        _ evidence: GuardEvidence,
        _ title: String
    ) -> RefusalRow {
        let answer = LocalRow(401, .client, .getToken, title, .authenticate)
        return RefusalRow(subject, evidence, answer)
    }

    static func fixClient(
        _ subject: Subject,
        _ evidence: GuardEvidence,
        _ title: String
    ) -> RefusalRow {
        RefusalRow(subject, evidence, LocalRow(400, .client, .fixClient, title))
    }

    static func forbidden(
        _ subject: Subject,
        _ evidence: GuardEvidence,
        _ title: String
    ) -> RefusalRow {
        RefusalRow(subject, evidence, LocalRow(403, .client, .none, title))
    }

    /// An attestation that does not hold.
    static func unattested(_ step: LocalRow.NextStep, _ title: String) -> RefusalRow {
        RefusalRow(.enrolment, .none, LocalRow(403, .client, step, title))
    }

    /// The same request is good later.
    static func later(
        _ subject: Subject,
        _ status: Int,
        _ blame: LocalRow.Blame,
        _ title: String
    ) -> RefusalRow {
        RefusalRow(subject, .none, .later(status, blame, title))
    }
}
