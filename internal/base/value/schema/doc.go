// Package schema checks and requests replies of a model that are JSON of a given form.
//
// A form is a JSON Schema, draft 2020-12 or draft-07, of one document: references
// lead to other places of the same schema. [Compile] checks it, [Schema.Validate]
// compares a value with it and lists the violations, each with a JSON Pointer (RFC
// 6901) into the value. [ParseReply] reads the JSON of a reply. [Hint] asks a model
// for the form, [ExtractPrompt] asks it to turn a text into the form, and [RepairPrompt]
// asks it to correct a reply.
//
// As in the specification, format and the content keywords describe and do not
// constrain. Unknown keywords are ignored. Regular expressions are those of package
// regexp: no look-around, no back-references. A number without fraction is an
// integer however it is written, and 1 equals 1.0.
package schema
