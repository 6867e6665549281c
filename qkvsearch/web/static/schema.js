// What a JSON schema of OpenAPI says, in words and as an example; references are followed.

let components = {};

/** The description whose references are meant from now on. */
export const describe = (openapi) => (components = openapi.components?.schemas ?? {});

/** The schema itself, where it is a reference; without the null that an optional one may be. */
export function plain(schema) {
  if (schema?.$ref) return { ...plain(components[schema.$ref.split("/").pop()]), ...schema, $ref: undefined };
  const others = schema?.anyOf?.filter((one) => one.type !== "null");
  return others?.length === 1 ? { ...schema, ...plain(others[0]), anyOf: undefined } : (schema ?? {});
}

/** Its type, as a word of JSON: "list of string". */
export function typeOf(schema) {
  const found = plain(schema);
  if (found.enum) return found.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (found.const !== undefined) return JSON.stringify(found.const);
  if (found.anyOf) return found.anyOf.map(typeOf).join(" | ");
  if (found.type === "array") return found.items ? `list of ${typeOf(found.items)}` : "list";
  return found.type ?? "any";
}

/** An example of it: the first that it has, else what is required, and what has one itself.
 *  ofCatalog: gives an example that only the catalog has, by its place, as "items.id". */
export function exampleOf(schema, ofCatalog, depth = 0) {
  const found = plain(schema);
  const place = found["x-example-of"];
  if (place) return found.type === "array" ? [ofCatalog(place)] : ofCatalog(place);
  if (found.examples?.length) return found.examples[0];
  if (found.enum) return found.enum[0];
  if (found.type === "array") return found.items && depth < 4 ? [exampleOf(found.items, ofCatalog, depth + 1)] : [];
  if (found.type === "object" || found.properties) {
    const needed = Object.entries(found.properties ?? {}).filter(
      ([name, part]) => found.required?.includes(name) || hasExample(plain(part)),
    );
    return Object.fromEntries(needed.map(([name, part]) => [name, exampleOf(part, ofCatalog, depth + 1)]));
  }
  if (found.default !== undefined) return found.default;
  return { string: "", integer: 1, number: 1, boolean: false }[found.type] ?? null;
}

const hasExample = (schema) => schema.examples?.length || schema["x-example-of"];

/** All fields of an answer, those within others too: [name, type, meaning]. */
export function fieldsOf(schema, before = "", depth = 0) {
  const found = plain(schema);
  if (depth > 4) return [];
  if (found.type === "array") return fieldsOf(found.items, `${before}[]`, depth + 1);
  return Object.entries(found.properties ?? {}).flatMap(([name, part]) => {
    const place = before ? `${before}.${name}` : name;
    return [[place, typeOf(part), plain(part).description ?? ""], ...fieldsOf(part, place, depth + 1)];
  });
}
