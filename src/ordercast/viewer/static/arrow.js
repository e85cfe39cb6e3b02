"use strict";
// Reads what the server sends: an Arrow stream with one batch of plain numbers without nulls. It copies nothing.
// The format is that of Arrow's IPC streams: messages, each with a FlatBuffer that describes it, and a body.

const SCHEMA = 1, RECORD_BATCH = 3, INT = 2; // kinds of messages, and of a field
const END = 0; // the length of the message behind the last one

/** A table of a FlatBuffer: fields by their numbers. */
class FlatTable {
  constructor(view, at) { this.view = view; this.at = at; this.fields = at - view.getInt32(at, true); }
  /** Where a field is; 0: it has its default. */
  place(field) {
    const entry = 4 + 2 * field;
    const offset = entry < this.view.getUint16(this.fields, true) ? this.view.getUint16(this.fields + entry, true) : 0;
    return offset && this.at + offset;
  }
  byte(field) { const at = this.place(field); return at ? this.view.getUint8(at) : 0; }
  int(field) { const at = this.place(field); return at ? this.view.getInt32(at, true) : 0; }
  target(field) { const at = this.place(field); return at && at + this.view.getUint32(at, true); }
  table(field) { return new FlatTable(this.view, this.target(field)); }
  /** Where the parts of a vector are. */
  vector(field, size) {
    const at = this.target(field), length = at ? this.view.getUint32(at, true) : 0;
    return Array.from({ length }, (_, place) => at + 4 + place * size);
  }
  tables(field) { return this.vector(field, 4).map((at) => new FlatTable(this.view, at + this.view.getUint32(at, true))); }
  text(field) {
    const at = this.target(field);
    return new TextDecoder().decode(new Uint8Array(this.view.buffer, at + 4, this.view.getUint32(at, true)));
  }
}

function arrayType(field) {
  if (field.byte(2) !== INT) return Float64Array;
  const type = field.table(3), unsignedThenSigned = { 8: [Uint8Array, Int8Array], 16: [Uint16Array, Int16Array], 32: [Uint32Array, Int32Array] };
  return unsignedThenSigned[type.int(0)][type.byte(1)];
}

/** The header, with the columns as typed arrays by their names. */
function decoded(buffer) {
  const view = new DataView(buffer), found = {};
  let fields = [], at = 0;
  for (;;) {
    const length = view.getInt32(at + 4, true), begin = at + 8, body = begin + length;
    if (length === END) return found;
    const message = new FlatTable(view, begin + view.getUint32(begin, true)), kind = message.byte(1), content = message.table(2);
    if (kind === SCHEMA) {
      fields = content.tables(1);
      for (const pair of content.tables(2)) Object.assign(found, JSON.parse(pair.text(1)));
    } else if (kind === RECORD_BATCH) {
      const buffers = content.vector(2, 16); // two for each field: which values are null, and the values
      for (const [place, field] of fields.entries()) {
        const Type = arrayType(field), described = buffers[2 * place + 1];
        const offset = Number(view.getBigInt64(described, true)), bytes = Number(view.getBigInt64(described + 8, true));
        found[field.text(0)] = new Type(buffer, body + offset, bytes / Type.BYTES_PER_ELEMENT);
      }
    }
    const long = message.place(3);
    at = body + (long ? Number(view.getBigInt64(long, true)) : 0);
  }
}
