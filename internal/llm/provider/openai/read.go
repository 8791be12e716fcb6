package openai

import (
	"cmp"
	"encoding/json"

	"loki/internal/llm/provider/wire"
)

// doneMark is the data of an event that ends a stream.
const doneMark = "[DONE]"

// reportedError returns the failure that an event of the type error reports.
func reportedError(data []byte) error {
	var doc map[string]any
	if json.Unmarshal(data, &doc) != nil {
		return wire.Complaint(string(data), "", "")
	}
	return wire.MissingError("answer", data)
}

// notAnObject returns the error for a document that is not of the form of a reply.
func notAnObject(doc []byte) error {
	return cmp.Or(wire.ReplyError(doc), wire.BadReply("the reply is not a JSON object of the expected form", doc))
}
