//! Webhooks: requests that a sender signed.
