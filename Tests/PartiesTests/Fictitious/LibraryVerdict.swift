import Encodings
import OutboundCalls
import Verification

@testable import Parties

/// What the library says of a card: `{"branch": "north"}`, or `{}` of one that it does not know.
enum LibraryVerdict: Hashable {
    case good
    case unknown
    case otherBranch
    case failed(PartyFault)

    init(_ reply: CallReply, _ settings: LibrarySettings) {
        if let fault = PartyFault(reply) {
            self = .failed(fault)
            return
        }
        guard case .answered(200, _, let body) = reply,
            let answer = JSONDocument(body.span, members: ["branch"])
        else {
            self = .failed(.unreadable)
            return
        }
        let branch = answer.string("branch")
        self = branch == nil ? .unknown : .good
        if let asked = settings.branch, let branch, branch != asked { self = .otherBranch }
    }

    /// The label of metrics.
    var word: String {
        switch self {
        case .good: "good"
        case .unknown: "unknown"
        case .otherBranch: "other-branch"
        case .failed(let fault): fault.word("library")
        }
    }

    var finding: TokenFinding {
        switch self {
        case .good: .good
        case .unknown: .invalid
        case .otherBranch: .refused
        case .failed: .unavailable
        }
    }
}
