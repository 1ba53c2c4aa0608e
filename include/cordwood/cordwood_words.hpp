// The words that options and records take: levels, codecs, what happens when a store is full. A
// part of cordwood.hpp, which includes it.
//
//     log.log(cordwood::level::warn, "order {} is late", 7);
//
// Constants: any thread.
#ifndef CORDWOOD_WORDS_HPP
#define CORDWOOD_WORDS_HPP

#include <cordwood/cordwood.h>

#include <chrono>
#include <string_view>

namespace cordwood {

/// Severity. static_cast of any number from 1 to 24 is valid, too.
enum class level : cw_level {
    trace = CW_LEVEL_TRACE,
    debug = CW_LEVEL_DEBUG,
    info = CW_LEVEL_INFO,
    notice = CW_LEVEL_NOTICE,
    warn = CW_LEVEL_WARN,
    error = CW_LEVEL_ERROR,
    fatal = CW_LEVEL_FATAL,
    off = CW_LEVEL_OFF // for thresholds only
};

enum class codec : uint32_t { zstd = CW_CODEC_ZSTD, lz4 = CW_CODEC_LZ4, none = CW_CODEC_NONE };
enum class archive_method : uint32_t { dense = CW_ARCHIVE_DENSE, plain = CW_ARCHIVE_PLAIN };

enum class overflow : uint32_t {
    grow = CW_OVERFLOW_GROW,
    drop = CW_OVERFLOW_DROP,
    block = CW_OVERFLOW_BLOCK
};

enum class console : uint32_t {
    off = CW_CONSOLE_OFF,
    text = CW_CONSOLE_TEXT,
    json = CW_CONSOLE_JSON,
    automatic = CW_CONSOLE_AUTO
};

enum class consent : cw_consent {
    granted = CW_CONSENT_GRANTED,
    pending = CW_CONSENT_PENDING,
    denied = CW_CONSENT_DENIED
};

enum class durability { process = CW_DURABLE_PROCESS, machine = CW_DURABLE_MACHINE };

/// The version of the library in use: "0.1.0".
inline std::string_view version() noexcept { return cw_version_string(); }

constexpr std::chrono::milliseconds forever = std::chrono::milliseconds::max();

} // namespace cordwood

#endif
