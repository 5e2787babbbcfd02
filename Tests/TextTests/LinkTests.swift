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

    @Test func `the front door has at most 250 lines`() throws {
        #expect(try Document("README.md").lines.count <= 251)
    }

    @Test func `an index with pages has at most 100 lines, and links each; a page has at most 400`()
        throws
    {
        let divided = Repository.indexes.filter { !Repository.pages(of: $0).isEmpty }
        #expect(!divided.isEmpty)
        for index in divided {
            let document = try Document(index)
            #expect(document.lines.count <= 101, "\(index)")
            for page in Repository.pages(of: index) {
                #expect(try Document(page).lines.count <= 401, "\(page)")
                let link = String(page.dropFirst(index.count - "README.md".count))
                #expect(document.links.contains { $0.hasPrefix(link) }, "\(index): \(link)")
            }
        }
    }
}
