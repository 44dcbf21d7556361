#define kSecretAt 0x123400000000ULL
#define kSecretBytes 4096U
#define kSecretByte 0xA7
