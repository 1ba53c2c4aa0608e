// swift-tools-version: 6.3
import PackageDescription

// Swift hosts outside Cordwood's package, which refer to it by path.
let package = Package(
    name: "consumer",
    products: [
        .executable(name: "Consumer", targets: ["Consumer"]),
        .executable(name: "HTTPPlanted", targets: ["HTTPPlanted"]),
        .executable(name: "Moved", targets: ["Moved"]),
    ],
    dependencies: [.package(name: "cordwood", path: "../../..")],
    targets: [
        .executableTarget(
            name: "Consumer", dependencies: [.product(name: "Cordwood", package: "cordwood")]),
        .executableTarget(
            name: "HTTPPlanted",
            dependencies: [
                .product(name: "Cordwood", package: "cordwood"),
                .product(name: "CordwoodHTTPCapture", package: "cordwood"),
            ]),
        .executableTarget(
            name: "Moved", dependencies: [.product(name: "Cordwood", package: "cordwood")]),
    ]
)
