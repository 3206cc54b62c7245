export const name = "library";
