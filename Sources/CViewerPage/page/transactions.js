// The view of transactions: use cases with their figures, the funnel of one, what is stuck in it,
// and the records of one transaction, of all its processes.

import { aside, Asker, figures, fill, listed } from "./parts.js";
import { msText } from "./time.js";
import { button, counted, element, grouped, nothing, visible } from "./text.js";

/** @typedef {import("./api.js").Usecase} Usecase */

export class Transactions extends Asker {
  name = "transactions";
  title = "Transactions";
  asks = true;

  box = element("div", { class: "page", tabIndex: 0, role: "region", "aria-label": "Use cases" });
  aside = aside("Funnel");
  parts = [element("div", { class: "bar" }, this.status),
    element("div", { class: "columns" }, this.box, this.aside)];

  show() {
    const { usecase, id } = this.state.more;
    this.begin();
    this.aside.hidden = true;
    this.read("transactions", this.asked, (lines, { left_out: left = 0 }) => {
      const all = lines.flatMap((line) => line.usecase ?? []);
      this.status.textContent = counted(all.length, "use case")
        + (left > 0 ? `, ${grouped(left)} transactions of others left out` : "");
      this.box.replaceChildren(all.length === 0 ? nothing(this.isFree
        ? "These stores hold no transactions: a program begins one for each run of a use case."
        : "No record of a transaction matches.")
        : figures(["Use case", "Count", "Open", "Failed", "p50", "p95", "max"],
          all.map((one) => this.cells(one))));
    });
    if (id) this.showOne(id);
    else if (usecase) this.showFunnel(usecase);
  }

  focus() {
    this.box.querySelector("button")?.focus();
  }

  command() {
    return this.commandOf({ verb: "transactions" });
  }

  /** @param {Usecase} one */
  cells(one) {
    const name = `${one.usecase}${one.name ? ` ${one.name}` : ""}`;
    const { p50, p95, max } = one.duration_ms ?? {};
    return [
      button(visible(name), () => this.host.ask({ more: { usecase: String(one.usecase) } }),
        { class: "link" }),
      grouped(one.count), grouped(one.count - one.ended), grouped(one.with_errors),
      msText(p50), msText(p95), msText(max),
    ];
  }

  /** @param {string} usecase */
  showFunnel(usecase) {
    const path = `transactions/${encodeURIComponent(usecase)}/funnel`;
    this.read(path, this.asked, (lines, { left_out: left = 0 }) => {
      const one = lines.flatMap((line) => line.usecase ?? [])[0];
      if (!one) return;
      const rows = [{ event: "", name: "begun", reached: one.count, share: 1,
        stopped: one.stopped_at_once }, ...one.funnel];
      const stuck = lines.flatMap((line) => line.transaction ?? []);
      this.open(`Use case ${one.usecase} ${one.name ?? ""}`,
        figures(["Event", "Reached", "Share", "Stopped"], rows.map((row) => {
          const share = element("span", { class: "share" });
          share.style.width = `${row.share * 100}%`;
          return [element("span", { class: "funnel" }, share,
            element("span", {}, visible(`${row.event} ${row.name ?? ""}`.trim()))),
          grouped(row.reached), `${(row.share * 100).toFixed(1)} %`, grouped(row.stopped)];
        })),
        element("h2", {}, stuck.length === 0 ? "None is stuck"
          : `Stuck: ${grouped(stuck.length + left)}, the longest quiet first`),
        listed("ul", stuck.map((it) => button(`${this.time(it.last_ns)} ${it.id}`
          + (it.last_event === undefined ? "" : ` after ${it.last_event}`),
        () => this.host.ask({ more: { usecase, id: it.id } })))));
    });
  }

  /** @param {string} id */
  showOne(id) {
    this.read(`transaction/${encodeURIComponent(id)}`, this.asked, (lines) => {
      this.open(id, element("p", { class: "actions" },
        button("All its records", () => this.toLogs(`txn:${id}`)),
        button("Its trace", () =>
          this.toTrace(id.slice(-36).replaceAll("-", "").toLowerCase()))),
      listed("ol", lines.flatMap(({ moment: it }) => it ? button(
        visible([this.time(it.time_ns), it.process, it.operation, it.event, it.name, it.error_code,
          it.error_description, msText(it.duration_ms)].filter((part) => part !== undefined)
          .join(" ")), () => this.toLogs("", it.key),
        { class: it.error_code === undefined ? "" : "bad" }) : [])));
    });
  }

  /** @param {string} title @param {...Node} content */
  open(title, ...content) {
    fill(this.aside, () => this.close(), [element("strong", {}, visible(title))], ...content);
  }

  close() {
    if (this.aside.hidden) return;
    this.host.ask({ more: {} });
    this.focus();
  }

  /** @param {number} by */
  move(by) {
    const box = this.aside.contains(document.activeElement) ? this.aside : this.box;
    const all = [...box.querySelectorAll("button")];
    const at = all.findIndex((one) => one === document.activeElement);
    all[Math.max(0, Math.min(all.length - 1, at + by))]?.focus();
  }

  keys = {
    Escape: () => this.close(), j: () => this.move(1), k: () => this.move(-1),
    l: () => this.aside.querySelector("button")?.focus(), h: () => this.focus(),
  };

  help = [["j k", "next, previous"], ["Enter", "opens it"], ["l h", "to what opened, back"]];
}
