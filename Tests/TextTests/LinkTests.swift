import Foundation
import Testing

/// Where the links of the texts lead, and how long the front door is.
@Suite struct LinkTests {
    private static let others = [".github/SECURITY.md", "CHANGELOG.md"]

    @Test(arguments: Repository.texts + others)
    func `every link leads to a file and a heading`(_ path: String) throws {
        let document = try Document(path)
        let folder = URL(filePath: path, relativeTo: Repository.folder).deletingLastPathComponent()
        for link in document.links where !link.hasPrefix("http") {
            let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
            let file =
                parts[0].isEmpty
                ? Repository.folder.appending(path: path)
                : folder.appending(path: String(parts[0])).standardizedFileURL
            #expect(Repository.exists(file), "\(path): \(link)")
            guard parts.count == 2, Repository.exists(file) else { continue }
            let target = file.standardizedFileURL.path
                .dropFirst(Repository.folder.standardizedFileURL.path.count + 1)
            let anchors = try Document(String(target)).anchors
            #expect(anchors.contains(String(parts[1])), "\(path): \(link)")
        }
    }

    @Test func `every page is linked from the index of its folder`() throws {
        let tops = ["rules", "deploy", "Sources", "Tests"]
        for page in tops.flatMap(Repository.pages) where !page.hasSuffix("/README.md") {
            let folder = page.split(separator: "/").dropLast().map(String.init)
            let beside = (folder + ["README.md"]).joined(separator: "/")
            let above = (folder.dropLast() + ["README.md"]).joined(separator: "/")
            let isBeside = Repository.exists(Repository.folder.appending(path: beside))
            let index = isBeside ? beside : above
            let link = String(page.dropFirst(index.count - "README.md".count))
            let links = try Document(index).links
            #expect(links.contains { $0.hasPrefix(link) }, "\(index): \(link)")
        }
    }
}
