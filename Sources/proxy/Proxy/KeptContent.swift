import Cryptography
import Services
import Verification

/// Content of a request that is here, or what is remembered of it.
enum KeptContent {
    case nothing
    /// All of it came whole with the head, and goes out behind it.
    case withHead([UInt8])
    /// It is held until it can be judged by what the head claims.
    indirect case unjudged(HeldBody, Proof)
    /// It is held, and judged.
    case held(HeldBody)
    /// What was held of it goes on unjudged.
    case released(HeldBody)
    /// It is collected for a service.
    case collected(ServiceEntry, [UInt8])
    /// It streams, and must have the digest that the head states: so far.
    case hashed(ContentDigest)
    /// The answer that a service made of it.
    indirect case answered(LocalResponse)

    /// Content that is held, judged or not.
    var heldBody: HeldBody? {
        switch self {
        case .unjudged(let body, _), .held(let body), .released(let body): body
        case .nothing, .withHead, .collected, .hashed, .answered: nil
        }
    }

    /// The bytes that were here with the head, to be judged with it.
    var arrived: [UInt8] {
        switch self {
        case .withHead(let bytes): bytes
        case .held(let body): body.memory
        case .nothing, .unjudged, .released, .collected, .hashed, .answered: []
        }
    }

    /// Adds a piece to what is collected.
    mutating func collect(_ piece: Span<UInt8>) {
        guard case .collected(let service, var bytes) = self else { return }
        // Taken out, so that the bytes have one owner and grow where they are.
        self = .nothing
        piece.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
        self = .collected(service, bytes)
    }

    /// Hashes a piece.
    func hash(_ piece: Span<UInt8>) {
        if case .hashed(let digest) = self { digest.stream.update(piece) }
    }
}

/// The digest of content that streams: so far. A reference, because it is large, and most requests
/// have none.
final class ContentDigest {
    @exclusivity(unchecked) var stream = SHA256.Stream()
}
