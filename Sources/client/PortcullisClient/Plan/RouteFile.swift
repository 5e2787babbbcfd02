import Crypto
public import Foundation

/// Where a session keeps the plan that it has fetched, and what answers have taught it of routes,
/// when its process ends.
///
/// No secret is among that, and no path: learned routes are kept by their digests.
///
/// May grow: a `switch` over it has an `@unknown default`.
#if hasAttribute(nonexhaustive)
    @nonexhaustive(warn)
#endif
public enum RouteMemory: Hashable, Sendable {
    /// In a file in the folder of the app's caches, one for each gateway.
    case caches
    /// In this file. Give each gateway one of its own.
    case file(URL)
    /// Nowhere.
    case none

    /// `nil` for nowhere.
    func file(of endpoints: URL) -> URL? {
        switch self {
        case .none: return nil
        case .file(let url): return url
        case .caches:
            let folder = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first
            let digest = SHA256.hash(data: Data(endpoints.absoluteString.utf8)).prefix(8)
            let name = digest.map { String(format: "%02x", $0) }.joined()
            return folder?.appending(path: "portcullis.routes.\(name)")
        }
    }
}

/// The file with a plan and lessons: JSON, read and written whole.
///
/// It is not trusted more than an answer: the plan in it is read as one that was fetched, and what
/// can't be read is ignored.
struct RouteFile: Sendable {
    /// A plan of the gateway's.
    struct FetchedPlan: Sendable {
        let json: String
        /// Its entity tag.
        let tag: String?
        /// When the gateway has written it, by the gateway's clock.
        let served: Date?
        /// When it came or was confirmed, by this device's clock.
        var time: Date
    }

    /// What was learned of a route.
    struct Lesson: Hashable, Sendable {
        /// Of the route: the first bytes of a digest, in base64.
        let digest: String
        let requirement: SigningRequirement?
        let observes: Bool
        /// Whether it was learned after the plan was fetched.
        let isNewer: Bool
        let time: Date
    }

    struct Kept: Codable, Sendable {
        struct Plan: Codable {
            let json: String
            let tag: String?
            let served: Double?
            let time: Double
        }

        struct Route: Codable {
            let digest: String
            let ask: PlanDraft.Demand?
            let observes: Bool
            let newer: Bool
            let time: Double
        }

        let portcullis_routes: Int
        let gateway: String
        let plan: Plan?
        let routes: [Route]
    }

    let url: URL
    let gateway: String
    /// The longest file that is read: the plan, escaped, and the lessons.
    private let bytesMax: Int

    private static let version = 1
    /// How old a plan may be, in seconds: a month.
    fileprivate static let planAge: Double = 30 * 86_400
    /// How old a lesson may be, in seconds: a week. A rule that is off says nothing that would
    /// correct it.
    fileprivate static let lessonAge: Double = 7 * 86_400
    /// The most lessons that are read.
    fileprivate static let lessonsMax = 4_096

    /// The order of a plan in the file, and of lessons that are newer; others have order 0.
    static let planOrder: UInt64 = 1
    static let newerOrder: UInt64 = 2

    init(url: URL, gateway: String, bytesMax: Int) {
        (self.url, self.gateway, self.bytesMax) = (url, gateway, 2 * bytesMax + (2 << 20))
    }

    /// What is in it; `nil` where that is nothing, or nothing of this gateway's.
    func read() -> Kept? {
        guard let handle = try? FileHandle(forReadingFrom: url) else { return nil }
        defer { try? handle.close() }
        guard let data = try? handle.read(upToCount: bytesMax + 1), data.count <= bytesMax,
            let kept = try? JSONDecoder().decode(Kept.self, from: data),
            kept.portcullis_routes == Self.version, kept.gateway == gateway
        else { return nil }
        return kept
    }

    /// Replaces it whole, so that no other process reads half of it.
    func write(_ plan: FetchedPlan?, _ lessons: [Lesson]) {
        let kept = Kept(
            portcullis_routes: Self.version,
            gateway: gateway,
            plan: plan.map {
                Kept.Plan(
                    json: $0.json,
                    tag: $0.tag,
                    served: $0.served?.timeIntervalSince1970,
                    time: $0.time.timeIntervalSince1970
                )
            },
            routes: lessons.map { lesson in
                Kept.Route(
                    digest: lesson.digest,
                    ask: lesson.requirement.map(PlanDraft.Demand.init),
                    observes: lesson.observes,
                    newer: lesson.isNewer,
                    time: lesson.time.timeIntervalSince1970
                )
            }
        )
        // It only saves round trips: where it can't be written, the next start does without.
        guard let data = try? JSONEncoder().encode(kept) else { return }
        let folder = url.deletingLastPathComponent()
        try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try? data.write(to: url, options: .atomic)
    }

    /// Whether a time is of the last `age` seconds. One that is to come was written before the
    /// clock was set back.
    fileprivate static func isRecent(_ time: Double, at now: Date, within age: Double) -> Bool {
        let passed = now.timeIntervalSince1970 - time
        return passed > -86_400 && passed < age
    }
}

extension RouteFile.Kept {
    func plan(at now: Date) -> RouteFile.FetchedPlan? {
        guard let plan, RouteFile.isRecent(plan.time, at: now, within: RouteFile.planAge)
        else { return nil }
        return RouteFile.FetchedPlan(
            json: plan.json,
            tag: plan.tag,
            served: plan.served.map(Date.init(timeIntervalSince1970:)),
            time: Date(timeIntervalSince1970: plan.time)
        )
    }

    /// Those that are not too old and can be read.
    func lessons(at now: Date) -> [RouteFile.Lesson] {
        routes.prefix(RouteFile.lessonsMax).compactMap { route in
            guard RouteFile.isRecent(route.time, at: now, within: RouteFile.lessonAge)
            else { return nil }
            var requirement: SigningRequirement?
            if let ask = route.ask {
                guard let read = try? ask.requirement(of: "learned") else { return nil }
                requirement = read
            }
            return RouteFile.Lesson(
                digest: route.digest,
                requirement: requirement,
                observes: route.observes,
                isNewer: route.newer,
                time: Date(timeIntervalSince1970: route.time)
            )
        }
    }
}
