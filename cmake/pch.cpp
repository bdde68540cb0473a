// Carries the precompiled header that targets with torch share.
