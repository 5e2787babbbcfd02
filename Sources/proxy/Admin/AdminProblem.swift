/// Why a page is not shown, or why the gateway is not ready. The raw value is API: add, do not
/// rename.
enum AdminProblem: String, CaseIterable {
    case pageUnknown = "page-unknown"
    case methodRefused = "method-refused"
    case contentRefused = "content-refused"
    case headTimeout = "head-timeout"
    case gatherTimeout = "gather-timeout"
    case draining = "draining"
    case storeDegraded = "store-degraded"

    /// The status that answers it, and one line for people.
    var row: (status: Int, summary: String) {
        switch self {
        case .pageUnknown: (404, "there is no such page")
        case .methodRefused: (405, "only GET and HEAD are served")
        case .contentRefused: (413, "requests with content are not served")
        case .headTimeout: (408, "the request did not arrive in time")
        case .gatherTimeout: (503, "the lanes did not answer in time")
        case .draining: (503, "the gateway ends")
        case .storeDegraded: (503, "the key store can't write")
        }
    }
}
