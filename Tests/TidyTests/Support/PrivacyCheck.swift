import Foundation

/// What the privacy manifest of the client says, and whether the code keeps to it.
///
/// Apple asks for a reason for each of these APIs ("Describing use of required reason API"), and
/// looks for them in the program that is uploaded.
struct PrivacyCheck {
    private struct Manifest: Decodable {
        struct Access: Decodable {
            let NSPrivacyAccessedAPIType: String
            let NSPrivacyAccessedAPITypeReasons: [String]
        }

        let NSPrivacyTracking: Bool
        let NSPrivacyTrackingDomains: [String]
        let NSPrivacyCollectedDataTypes: [[String: String]]
        let NSPrivacyAccessedAPITypes: [Access]
    }

    /// The categories, without their common beginning, that the manifest gives a reason for.
    let declared: Set<String>
    /// Whether it says that nothing is tracked and nothing collected.
    let isQuiet: Bool

    /// The categories of Apple's list, and the words by which code shows that it uses them.
    private static let words: [String: Set<String>] = [
        "FileTimestamp": [
            "attributesOfItem", "contentModificationDate", "contentModificationDateKey",
            "creationDate", "creationDateKey", "fgetattrlist", "fileModificationDate", "fstat",
            "fstatat", "getattrlist", "getattrlistat", "getattrlistbulk", "lstat",
            "modificationDate", "stat",
        ],
        "SystemBootTime": ["mach_absolute_time", "systemUptime"],
        "DiskSpace": [
            "fstatfs", "fstatvfs", "statfs", "statvfs", "systemFreeSize", "systemSize",
            "volumeAvailableCapacity", "volumeAvailableCapacityForImportantUsage",
            "volumeAvailableCapacityForOpportunisticUsage", "volumeTotalCapacity",
        ],
        "ActiveKeyboards": ["activeInputModes"],
        "UserDefaults": ["NSUserDefaults", "UserDefaults"],
    ]

    init(propertyList: Data) throws {
        let manifest = try PropertyListDecoder().decode(Manifest.self, from: propertyList)
        let accesses = manifest.NSPrivacyAccessedAPITypes.filter {
            !$0.NSPrivacyAccessedAPITypeReasons.isEmpty
        }
        declared = Set(
            accesses.map {
                $0.NSPrivacyAccessedAPIType.replacing("NSPrivacyAccessedAPICategory", with: "")
            }
        )
        isQuiet =
            !manifest.NSPrivacyTracking && manifest.NSPrivacyTrackingDomains.isEmpty
            && manifest.NSPrivacyCollectedDataTypes.isEmpty
    }

    func findings(in source: SwiftSource) -> [Finding] {
        source.tokens.compactMap { token in
            guard token.kind == .word,
                let category = Self.words.first(where: { $0.value.contains(token.text) })?.key,
                !declared.contains(category)
            else { return nil }
            return source.finding(
                token.line,
                "\(token.text) needs a reason in PrivacyInfo.xcprivacy: \(category)"
            )
        }
    }
}
