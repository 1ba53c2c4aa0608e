// swift-tools-version: 6.2
import PackageDescription

// A Swift host outside Cordwood's package, which it names by path.
let package = Package(
    name: "consumer",
    products: [.executable(name: "Consumer", targets: ["Consumer"])],
    dependencies: [.package(name: "cordwood", path: "../../..")],
    targets: [
        .executableTarget(
            name: "Consumer", dependencies: [.product(name: "Cordwood", package: "cordwood")])
    ]
)
