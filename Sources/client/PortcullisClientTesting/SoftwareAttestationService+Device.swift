internal import Encodings

extension SoftwareAttestationService {
    /// Which kind of device a key is of. Its certificate says so.
    public enum Device: Hashable, Sendable {
        /// An iPhone, an iPad, or another device that is no Mac.
        case iPhone
        /// A Mac, with Full Security and System Integrity Protection: gateways ask for that where
        /// an app entry says `platform: macos`.
        case mac

        /// What the leaf has because of it: extensions of Apple's by their numbers, each with its
        /// values by tag.
        var extensions: [(number: UInt32, values: [(tag: UInt32, value: [UInt8])])] {
            switch self {
            case .iPhone: [(7, Self.system("18.2", "22C152", "iphoneos"))]
            case .mac:
                [(7, Self.system("27.0.1", "24A446", "macosx")), (6, [(3, Self.accessControl)])]
            }
        }

        private static func system(
            _ version: String,
            _ build: String,
            _ platform: String
        ) -> [(tag: UInt32, value: [UInt8])] {
            [
                (1400, Array(version.utf8)), (1403, Array(build.utf8)),
                (1026, Array(platform.utf8)),
            ]
        }

        /// The access control list that Apple prints for Macs ("Validating apps", step 4).
        private static var accessControl: [UInt8] {
            let granted = DEREncoder.element(
                .explicit(1),
                DEREncoder.element(.boolean, [0xFF])
            )
            let signing = DEREncoder.sequence([
                text("osgn"), DEREncoder.element(.explicit(0), text("rsec")),
                DEREncoder.sequence([
                    DEREncoder.element(.explicit(6), DEREncoder.integer(1))
                ]),
            ])
            let rights = ["ok", "oa", "odel"].map { DEREncoder.sequence([text($0), granted]) }
            return DEREncoder.sequence([text("11"), DEREncoder.sequence(rights + [signing])])
        }

        private static func text(_ text: String) -> [UInt8] {
            DEREncoder.element(.utf8String, Array(text.utf8))
        }
    }
}
