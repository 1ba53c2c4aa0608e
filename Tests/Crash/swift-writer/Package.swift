// swift-tools-version: 6.2
import PackageDescription

// The kill test's writer as a Swift host: Cordwood by path.
let package = Package(
    name: "cordwood-crash-swift",
    products: [.executable(name: "Writer", targets: ["Writer"])],
    dependencies: [.package(name: "cordwood", path: "../../..")],
    targets: [
        .executableTarget(
            name: "Writer", dependencies: [.product(name: "Cordwood", package: "cordwood")])
    ]
)
