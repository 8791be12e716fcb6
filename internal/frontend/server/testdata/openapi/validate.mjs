// validate.mjs FILE: fails unless FILE is a valid OpenAPI document.
import { createRequire } from "node:module";
const require = createRequire(process.env.MODULES + "/");
const { default: SwaggerParser } = await import(require.resolve("@apidevtools/swagger-parser"));
const api = await SwaggerParser.validate(process.argv[2]);
console.log(Object.keys(api.paths).length);
