// The bodies of requests, in the types of the official SDKs.
import type OpenAI from "openai";
import type AnthropicSDK from "@anthropic-ai/sdk";
import type { ConverseCommandInput } from "@aws-sdk/client-bedrock-runtime";
import type { Content, GenerationConfig, SafetySetting, Tool, ToolConfig } from "@google/genai";
// The names on the wire are not those of Cohere's SDK, but it holds them too.
import type { V2EmbedRequest } from "../node_modules/cohere-ai/dist/serialization/resources/v2/client/requests/V2EmbedRequest.js";
import type { V2RerankRequest } from "../node_modules/cohere-ai/dist/serialization/resources/v2/client/requests/V2RerankRequest.js";
import type { V2ChatRequest } from "../node_modules/cohere-ai/dist/serialization/resources/v2/client/requests/V2ChatRequest.js";

// Wire is T as JSON has it: enumerations as their strings, bytes in base64, no methods.
// What may be any value stays as it is.
type Wire<T> = unknown extends T ? T
  : T extends string ? `${T}`
  : T extends Uint8Array ? string
  : T extends number | boolean | null | undefined ? T
  : T extends readonly (infer U)[] ? Wire<U>[]
  : T extends object ? { [K in keyof T as T[K] extends Function ? never : K]: Wire<T[K]> }
  : never;

// OmitEach is Omit for each member of a union.
type OmitEach<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

export type OpenAIChat = OpenAI.Chat.ChatCompletionCreateParams;

export type OpenAIResponses = OpenAI.Responses.ResponseCreateParams;

export type Anthropic = AnthropicSDK.MessageCreateParams;

// The model is part of the URL.
export type AnthropicOnVertex = OmitEach<AnthropicSDK.MessageCreateParams, "model"> & {
  anthropic_version: "vertex-2023-10-16";
};

// The SDK gathers what the API has at the top level in one object, so the top level is
// that of https://ai.google.dev/api/generate-content.
export interface Gemini {
  contents: Wire<Content>[];
  systemInstruction?: Wire<Content>;
  tools?: Wire<Tool>[];
  toolConfig?: Wire<ToolConfig>;
  safetySettings?: Wire<SafetySetting>[];
  generationConfig?: Wire<GenerationConfig>;
}

// The model is part of the URL.
export type Converse = Wire<Omit<ConverseCommandInput, "modelId">>;

export type Cohere = V2ChatRequest.Raw & { stream?: boolean };

export type OpenAIEmbedding = OpenAI.EmbeddingCreateParams;

export type CohereEmbedding = V2EmbedRequest.Raw;

export type CohereRerank = V2RerankRequest.Raw;
