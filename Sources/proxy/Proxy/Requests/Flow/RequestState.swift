import HTTPWire
import Verification

/// The state of the request.
enum RequestState {
    /// The judge is asked for the verdict: about the head, or about the held content. Leaves to
    /// `collecting`, `holding`, `awaitingKey`, `awaitingCommit`, `awaitingAnswer`,
    /// `connecting`, `skimming`, `serving`, `over`.
    case judging(Content)
    /// The content for a service is on its way. Leaves to `serving`, `over`.
    case collecting(contentMax: UInt64)
    /// Content is read and held until all of it can be judged, or released unjudged.
    /// Leaves to `judging`, `connecting`, `skimming`, `over`.
    case holding(Content)
    /// A proxy may forward the request that it asks about. The content is read to its end, and
    /// compared with the digest that the head states. Nothing of it is kept. Leaves to `over`.
    case skimming(Content.Rest)
    /// The service works on its answer, for a bounded time. Leaves to `over`.
    case serving
    /// The store is asked for the key. Leaves to `judging`, `over`.
    case awaitingKey(Content)
    /// The verdict allows the request, if the awaited commit does. Leaves to `awaitingAnswer`,
    /// `connecting`, `skimming`, `serving`, `over`.
    case awaitingCommit(Content)
    /// Another party is asked about the request: Apple about its device, or the one that knows a
    /// token of it. Leaves to `connecting`, `skimming`, `over`.
    case awaitingAnswer(Content, RequestQuery)
    /// A server is searched for. Leaves to `sending`, `over`.
    case connecting(Approach)
    /// A server has the request: ``Leg/Phase`` has the progress and the next states.
    case forwarding(Leg)
    /// The request has ended. The part that the origin got is known. Every event is late.
    case over(Delivery)
}

// Facts that the state alone decides.
extension RequestState {
    /// Whether the request has ended. Later events find it over.
    var isOver: Bool {
        if case .over = self { true } else { false }
    }

    /// Whether content is to be read from the client now.
    var takesContent: Bool {
        switch self {
        case .collecting, .holding, .skimming: true
        default: leg?.takesContent ?? false
        }
    }

    /// Whether the request ends when its client has closed both directions. Content that was
    /// verified as a whole is delivered as a whole.
    var endsWithClient: Bool {
        switch self {
        case .connecting(let approach): approach.content != .held
        case .forwarding(let leg): leg.endsWithClient
        case .collecting, .serving, .judging, .holding, .skimming, .awaitingKey, .awaitingCommit,
            .awaitingAnswer, .over:
            true
        }
    }

    /// Whether the client has sent all of the request.
    var isUploaded: Bool {
        switch self {
        case .judging(let content), .awaitingKey(let content), .awaitingCommit(let content),
            .awaitingAnswer(let content, _):
            content.isHere
        case .connecting(let approach): approach.content.isHere
        case .collecting, .holding, .skimming: false
        case .serving: true
        case .forwarding(let leg): leg.isGiven
        case .over: false
        }
    }

    /// Whether held content is forwarded unjudged, with the client's framing.
    var isReleased: Bool {
        if case .connecting(let approach) = self, case .released = approach.content {
            true
        } else {
            false
        }
    }

    /// The part of the request that an origin got, as far as it is known now.
    var delivery: Delivery {
        if case .over(let delivery) = self { return delivery }
        return leg?.delivery ?? .nothing
    }

    /// The request on its way to a server, also while its response comes; `nil` where there is
    /// none.
    var leg: Leg? {
        if case .forwarding(let leg) = self { leg } else { nil }
    }
}
