"""The pure core of the file tools: encodings, paging, edits, patches, diffs, path rules. It opens nothing."""
